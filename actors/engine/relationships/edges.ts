export type Edges = ReadonlyMap<string, ReadonlySet<string>>;

export function edge(edges: Map<string, Set<string>>, from: string, to: string): void {
  const existing = edges.get(from);
  if (existing === undefined) edges.set(from, new Set([to]));
  else existing.add(to);
}

export function inverse(edges: Edges): Edges {
  const inverted = new Map<string, Set<string>>();
  for (const [from, targets] of edges) for (const to of targets) edge(inverted, to, from);
  return inverted;
}

/** Everything that is reached from `roots` inside of `within`, the roots included. */
export function closure(roots: Iterable<string>, within: { has(entity: string): boolean }, next: (entity: string) => Iterable<string>): Set<string> {
  const reached = new Set(roots);
  // A set yields what is added while it is read.
  for (const entity of reached) for (const other of next(entity)) if (within.has(other)) reached.add(other);
  return reached;
}

/**
 * Nodes so that each comes after its predecessors, whatever the order in which they are given. Of a cycle the first by name comes first.
 * @param pairs of predecessor and successor; those with other nodes are ignored
 */
export function inOrder(nodes: ReadonlySet<string>, pairs: Iterable<readonly [string, string]>): string[] {
  const successors = new Map([...nodes].toSorted().map((node): [string, Set<string>] => [node, new Set()]));
  const waitsFor = new Map([...successors.keys()].map((node): [string, number] => [node, 0]));
  for (const [from, to] of pairs) {
    const known = successors.get(from);
    const count = waitsFor.get(to);
    if (known === undefined || count === undefined || from === to || known.has(to)) continue;
    known.add(to);
    waitsFor.set(to, count + 1);
  }
  const ordered: string[] = [];
  const isOrdered = new Set<string>();
  const enter = (node: string) => {
    if (!isOrdered.has(node)) ordered.push(node);
    isOrdered.add(node);
  };
  let settled = 0;
  const settle = () => {
    for (; settled < ordered.length; settled += 1) {
      for (const successor of successors.get(ordered[settled] ?? '') ?? []) {
        const count = (waitsFor.get(successor) ?? 0) - 1;
        waitsFor.set(successor, count);
        if (count === 0) enter(successor);
      }
    }
  };
  for (const [node, count] of waitsFor) if (count === 0) enter(node);
  settle();
  // Only nodes of cycles, and those behind them, are left.
  for (const node of successors.keys()) {
    enter(node);
    settle();
  }
  return ordered;
}
