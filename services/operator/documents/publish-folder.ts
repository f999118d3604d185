import { type DocumentKind, documentFolders } from '#shared/config/document-kinds.ts';
import type { RawDocument } from '#shared/config/document-source.ts';
import { folderSource } from '#shared/config/folder-source.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { routerRequest } from '../router-api.ts';
import type { Target } from '../targets.ts';

interface Published {
  kind: string;
  id: string;
  version: number;
  /** `unchanged`: the version was there, with the same text. */
  outcome: 'published' | 'unchanged';
}

interface Publishable {
  kind: string;
  file: string;
  id: string;
  version: number;
  value: object;
}

/**
 * Publishes every document of a folder, in the order of kinds and names. It ends at the first that the platform refuses; those before it stay published, and a
 * repetition finds them unchanged.
 *
 * @throws `config.invalid` listing what can't be read, before anything is sent; the platform's refusal, naming the file
 */
export async function publishFolder(folder: string, target: Target, progress: (text: string) => void = () => {}): Promise<Published[]> {
  const { documents, problems } = await folderSource(folder).read(null);
  const read = (Object.keys(documentFolders) as DocumentKind[]).flatMap((kind) =>
    documents[kind].map((document) => publishable(documentFolders[kind], document)),
  );
  const all = [...problems, ...read.flatMap((one) => ('problems' in one ? one.problems : []))];
  if (all.length > 0) throw new SwitchyardError('config.invalid', all.join('\n'));
  const published: Published[] = [];
  for (const one of read) {
    if ('problems' in one) continue;
    progress(`publishing ${published.length + 1} of ${read.length}: ${one.file}`);
    published.push(await publish(one, target));
  }
  if (published.length === 0) throw new SwitchyardError('config.invalid', `${folder} has no documents`);
  return published;
}

function publishable(kind: string, { file, value, problems }: RawDocument): Publishable | { problems: readonly string[] } {
  if (problems.length > 0) return { problems: problems.map((problem) => `${file}: ${problem}`) };
  const { id, version } = Object(value);
  if (typeof id !== 'string' || !Number.isSafeInteger(version)) return { problems: [`${file}: it has no id, or no whole number as its version`] };
  return { kind, file, id, version, value: Object(value) };
}

async function publish({ kind, file, id, version, value }: Publishable, target: Target): Promise<Published> {
  const path = `/platform/${kind}/${encodeURIComponent(id)}/versions/${version}`;
  try {
    const { status } = await routerRequest(target, 'PUT', path, value);
    return { kind, id, version, outcome: status === 201 ? 'published' : 'unchanged' };
  } catch (cause) {
    if (cause instanceof SwitchyardError) throw new SwitchyardError(cause.code, `${file}: ${cause.message}`, { cause });
    throw cause;
  }
}
