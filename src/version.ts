// This version. A test holds it to deno.json.

export const version = "0.1.0";
