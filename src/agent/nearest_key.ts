// The known key that somebody most likely meant.

/** The nearest of `known` (dotted paths) to the unknown `path`: by edits of its last part, then of the whole path. */
export function nearestKey(path: string, known: readonly string[]): string {
  const last = (dotted: string) => dotted.slice(dotted.lastIndexOf(".") + 1);
  let nearest = "", least = Infinity;
  for (const candidate of known) {
    // The whole path only decides between candidates whose last parts are as near.
    const distance = edits(last(path), last(candidate)) + edits(path, candidate) / 1000;
    if (distance < least) [nearest, least] = [candidate, distance];
  }
  return nearest;
}

/** Edit distance: insertions, deletions and replacements that make `b` of `a`. */
function edits(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
    above = row;
  }
  return above[b.length]!;
}
