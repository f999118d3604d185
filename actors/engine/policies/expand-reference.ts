/** What references may name. */
interface Labelled {
  id: string;
  labels: readonly string[];
}

export interface Referable {
  policies: readonly Labelled[];
  routines: readonly Labelled[];
}

/** Expands references to `policy:<id>` and `routine:<id>`; a tag stands for all with the label. */
export function expander({ policies, routines }: Referable): (reference: string) => readonly string[] {
  const known = new Set<string>();
  const tagged = new Map<string, string[]>();
  const add = (kind: string, { id, labels }: Labelled) => {
    known.add(`${kind}:${id}`);
    for (const label of labels) {
      const members = tagged.get(label);
      if (members === undefined) tagged.set(label, [`${kind}:${id}`]);
      else members.push(`${kind}:${id}`);
    }
  };
  for (const policy of policies) add('policy', policy);
  for (const routine of routines) add('routine', routine);
  return (reference) => {
    if (reference.startsWith('tag:')) return tagged.get(reference.slice('tag:'.length)) ?? [];
    return known.has(reference) ? [reference] : [];
  };
}
