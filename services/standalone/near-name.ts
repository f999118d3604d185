/** Edits that a misspelt name may have, by its length: one per four characters. */
const CHARACTERS_PER_EDIT = 4;
const MAX_EDITS = 3;

/** The candidate with the fewest edits, each a character more, less, other, or two that have changed places; null: none is near. */
export function nearName(name: string, candidates: readonly string[]): string | null {
  const most = Math.min(MAX_EDITS, Math.floor(name.length / CHARACTERS_PER_EDIT));
  const near = candidates.map((candidate) => ({ candidate, edits: editsBetween(name, candidate) })).sort((one, other) => one.edits - other.edits)[0];
  return near !== undefined && near.edits <= most ? near.candidate : null;
}

/** The optimal string alignment distance. */
function editsBetween(from: string, to: string): number {
  let [before, last]: [number[], number[]] = [[], Array.from({ length: to.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= from.length; row += 1) {
    const next = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      const edits = [at(last, column) + 1, at(next, column - 1) + 1, at(last, column - 1) + (isSame ? 0 : 1)];
      next.push(Math.min(...edits, isSwapped ? at(before, column - 2) + 1 : Number.POSITIVE_INFINITY));
    }
    [before, last] = [last, next];
  }
  return at(last, to.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
