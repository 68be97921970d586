// Events for tests of stores, as lines.

/** A message's line, padded with `extra` fields behind those that are known. */
export function message(seq: number, text: string, extra: Record<string, unknown> = {}): string {
  const at = new Date(Date.UTC(2026, 11, 1) + seq * 1000).toISOString();
  return JSON.stringify({
    seq,
    at,
    type: "message",
    from: { role: "owner" },
    head: "2026-12-01",
    text,
    ...extra,
  });
}

/** An answer's line. */
export function answer(seq: number, upto: number, text: string): string {
  const at = new Date(Date.UTC(2026, 11, 1) + seq * 1000).toISOString();
  const model = {
    model: "demo/echo",
    provider: "demo",
    stop: "stop",
    tokens: { input: 1, output: 1 },
    ms: 1,
  };
  return JSON.stringify({ seq, at, type: "model", turn: "turn_1", round: 1, text, ...model, upto });
}

/** Lines 1 to `count`. */
export function messages(count: number): string[] {
  return Array.from({ length: count }, (_, i) => message(i + 1, `message ${i + 1} `.repeat(1 + i % 7)));
}

/** Texts that break readers which cut lines elsewhere than at byte 0x0A, or that count letters for bytes. */
export const oddTexts = [
  "\u2028 \u2029 \u0085 \v \f \r \r\n \n",
  "e\u0301 é 😀 👩‍👩‍👧‍👦 ４２ \u0000 \u001f \\u0000",
  '"}\n{"seq":1}',
  "",
  " ".repeat(5000),
];

/** Threads that must never share anything. */
export const oddThreads = [
  ...["telegram:42", "telegram-42", "Telegram:42", "telegram:４２", "telegram:a_b", "telegram:a:b"],
  ...["\u00e9", "e\u0301", "x.", "x ", "x", "X", "con", "CON", "nul.txt", "nul.json", "com1.a", "COM\u00b9"],
  ...["LPT1.tar.gz", "%2e%2e", "a/b", "a\\b", "../x", "a_b:c-d", "a_b-c:d", "a:b-c-d", "thread", "~", "."],
  ...["😀".repeat(512), "a".repeat(512), "a:" + "b".repeat(510), "events.sqlite", ".hidden", "-", "_:-"],
].filter((thread) => thread !== ".");
