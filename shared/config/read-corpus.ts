import { readdirSync, readFileSync } from 'node:fs';
import { z } from 'zod';

/**
 * One example of a contract, from `tests/corpus/<folder>`: a whole `document`, or a base file (`of`) and what to set and remove there.
 * `errors`: the paths of exactly all errors; none: valid.
 */
export interface CorpusCase {
  name: string;
  about: string;
  /** Null: the folder has one kind of document. */
  kind: string | null;
  document: unknown;
  errors: string[];
}

const caseFile = z.strictObject({
  about: z.string().min(1),
  kind: z.string().optional(),
  document: z.unknown().optional(),
  of: z.string().optional(),
  set: z.record(z.string(), z.unknown()).default({}),
  remove: z.array(z.string()).default([]),
  errors: z.array(z.string()).default([]),
});

/** Reads all examples of a folder. @throws when the prefix `valid-` or `invalid-` contradicts the presence of errors */
export function readCorpus(folder: string): CorpusCase[] {
  const root = new URL(`../../tests/corpus/${folder}/`, import.meta.url);
  const names = readdirSync(root).filter((name) => name.endsWith('.json'));
  return names.sort().map((file) => {
    const name = file.slice(0, -'.json'.length);
    const read = readCase(root, name);
    if (name.startsWith('invalid-') !== read.errors.length > 0) throw new Error(`${folder}/${file} has a name that contradicts its errors`);
    return read;
  });
}

function readCase(root: URL, name: string): CorpusCase {
  const { about, kind, document, of, set, remove, errors } = caseFile.parse(JSON.parse(readFileSync(new URL(`${name}.json`, root), 'utf8')));
  const base = of === undefined ? null : readCase(root, of);
  const changed = base === null ? document : base.document;
  for (const [path, value] of Object.entries(set)) change(changed, path, value);
  for (const path of remove) change(changed, path, undefined);
  return { name, about, kind: kind ?? base?.kind ?? null, document: changed, errors: errors.sort() };
}

/** Sets the value at a path like `a.b[0]`; undefined removes it. */
function change(document: unknown, path: string, value: unknown): void {
  const segments = path.match(/[^.[\]]+/g) ?? [];
  const last = segments.pop();
  let node = document;
  for (const segment of segments) node = isContainer(node) ? Reflect.get(node, segment) : undefined;
  if (last === undefined || !isContainer(node)) throw new Error(`the example has no ${path}`);
  if (value !== undefined) Reflect.set(node, last, value);
  else if (!Reflect.has(node, last)) throw new Error(`the example has no ${path} to remove`);
  else if (Array.isArray(node)) node.splice(Number(last), 1);
  else Reflect.deleteProperty(node, last);
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
