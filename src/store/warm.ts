// What a process keeps at hand of a bounded number of things: the least recently used leaves first.

export class Warm<T> {
  readonly #kept = new Map<string, T>();
  readonly #most: number;
  readonly #dropped: (value: T) => void;

  /** `dropped` is told of each value that leaves. */
  constructor(most: number, dropped: (value: T) => void = () => {}) {
    this.#most = most;
    this.#dropped = dropped;
  }

  get(key: string): T | undefined {
    const value = this.#kept.get(key);
    if (value === undefined) return undefined;
    this.#kept.delete(key);
    this.#kept.set(key, value);
    return value;
  }

  set(key: string, value: T): void {
    const before = this.#kept.get(key);
    if (before === value) return;
    this.drop(key);
    this.#kept.set(key, value);
    if (this.#kept.size > this.#most) this.drop(this.#kept.keys().next().value as string);
  }

  drop(key: string): void {
    const value = this.#kept.get(key);
    if (value === undefined) return;
    this.#kept.delete(key);
    this.#dropped(value);
  }

  clear(): void {
    for (const key of [...this.#kept.keys()]) this.drop(key);
  }
}
