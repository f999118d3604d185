/** Cycles often share edges: a few show the mistake. */
const MAX_CYCLES = 20;

/**
 * Finds cycles in a directed graph; `edges` maps each node to its successors.
 * @returns each cycle from one of its nodes back to it; of several that share edges perhaps only some
 */
export function findCycles(edges: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const cycles: string[][] = [];
  const finished = new Set<string>();
  for (const start of edges.keys()) {
    // Depth-first without recursion, since a chain may be as long as there are nodes.
    const path = new Set<string>();
    const stack: { node: string; rest: Iterator<string> }[] = [];
    const enter = (node: string) => {
      path.add(node);
      stack.push({ node, rest: (edges.get(node) ?? new Set<string>()).values() });
    };
    if (!finished.has(start)) enter(start);
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const next = top.rest.next();
      if (next.done === true) {
        finished.add(top.node);
        stack.pop();
        path.delete(top.node);
      } else if (path.has(next.value)) {
        const nodes = [...path];
        cycles.push([...nodes.slice(nodes.indexOf(next.value)), next.value]);
        if (cycles.length === MAX_CYCLES) return cycles;
      } else if (!finished.has(next.value)) enter(next.value);
    }
  }
  return cycles;
}
