// An agent's settings: their schema, defaults, and where they are read. (Being written.)
export interface Settings {
  model: { name?: string; fallback?: string; answer?: number; via?: string; url?: string; deadline: string };
  window: {
    max: number;
    unknown: number;
    compact_at: number | "never";
    margin: number;
    answer: number;
    save_notes: boolean;
  };
  storage: { conversations: string; sync: boolean; lease?: number | string; [driver: string]: unknown };
  instructions: Record<string, unknown>;
  tools: Record<string, string>;
}
