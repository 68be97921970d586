// The arguments of a call, read: only one whole JSON object is ever run.

/** The object that the model wrote, its texts well-formed, or undefined where it is anything else (cut short, empty, an array, two values). */
export function argumentsOf(text: string): Record<string, unknown> | undefined {
  try {
    // Half a pair can hide behind an escape; no server should have to take it.
    const value: unknown = JSON.parse(
      text,
      (_, inner) => typeof inner === "string" ? inner.toWellFormed() : inner,
    );
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? value as Record<string, unknown>
      : undefined;
  } catch {
    return undefined;
  }
}
