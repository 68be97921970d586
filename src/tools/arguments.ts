// The arguments of a call, read: only one whole JSON object is ever run.

/** The object that the model wrote, or undefined where it is anything else (cut short, empty, an array, two values). */
export function argumentsOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? value as Record<string, unknown>
      : undefined;
  } catch {
    return undefined;
  }
}
