export interface GraphEdge {
  id: string;
  source: string;
  target: string;
}

/** Column and row of each node. */
export type Places = ReadonlyMap<string, { column: number; row: number }>;

/**
 * Layers by the shortest way from the first node: an edge leads at most one row down, and those that lead back are drawn upwards. Within a row nodes stand in
 * the order of the mean column of those above, which keeps most edges from crossing. What is reached from nowhere is in the last row.
 */
export function layered(ids: readonly string[], edges: readonly GraphEdge[]): Places {
  const rows = rowsOf(ids, edges);
  const places = new Map<string, { column: number; row: number }>();
  for (const [row, members] of rows.entries()) {
    const weighted = members.map((id, order) => ({ id, order, weight: meanColumn(id, edges, places) ?? order }));
    weighted.sort((one, other) => one.weight - other.weight || one.order - other.order);
    for (const [column, { id }] of weighted.entries()) places.set(id, { column, row });
  }
  return places;
}

function rowsOf(ids: readonly string[], edges: readonly GraphEdge[]): string[][] {
  const known = new Set(ids);
  const placed = new Set<string>();
  const rows: string[][] = [];
  let row = ids.slice(0, 1);
  while (row.length > 0) {
    rows.push(row);
    for (const id of row) placed.add(id);
    const above = new Set(row);
    row = [...new Set(edges.flatMap(({ source, target }) => (above.has(source) && known.has(target) && !placed.has(target) ? [target] : [])))];
  }
  const rest = ids.filter((id) => !placed.has(id));
  return rest.length === 0 ? rows : [...rows, rest];
}

/** Null: nothing above leads to it. */
function meanColumn(id: string, edges: readonly GraphEdge[], places: Places): number | null {
  const columns = edges.flatMap(({ source, target }) => (target === id ? (places.get(source)?.column ?? []) : []));
  return columns.length === 0 ? null : columns.reduce((sum, column) => sum + column, 0) / columns.length;
}
