/**
 * Columns as wide as their widest cell, below a head. On a terminal that is narrower each row is stacked, a line per cell with the name of its column:
 * a wrapped row can not be read, and a cell that is cut can not be copied.
 *
 * @param columns of the terminal; null: it is none, such as a pipe
 */
export function tableLines(head: readonly string[], rows: readonly (readonly string[])[], columns: number | null): string[] {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const lines = all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  if (columns === null || lines.every(({ length }) => length <= columns)) return lines;
  return rows.flatMap((row, index) => [...(index === 0 ? [] : ['']), ...head.map((name, column) => `${name}: ${row[column] ?? ''}`.trimEnd())]);
}
