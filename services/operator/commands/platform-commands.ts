import { Argument, type Command } from 'commander';
import type { Environment } from '#shared/config/secret-ref.ts';
import type { Target, TargetOptions } from '../targets.ts';
import type { CommandDeps } from './dependencies.ts';
import { tableLines } from './table-lines.ts';
import { withTarget } from './target-options.ts';

type Json = TargetOptions & { json?: boolean };

/** As in addresses. */
const KINDS = ['prompts', 'routines', 'policies', 'glossaries', 'macros', 'variable-sets'];
const HEAD = ['ID', 'VERSIONS', 'NEWEST', 'PUBLISHED AT'];

/** Documents of agents that are published to a router, which is their platform. */
export function addPlatformCommands(program: Command, { environment, print, progress, columns }: CommandDeps): void {
  const documents = program
    .command('documents')
    .description(
      "documents that are published to a router; needs its PLATFORM_PUBLIC_KEY and PLATFORM_SECRET_KEY, or a file with both keys, as 'public:secret'",
    );

  withTarget(documents.command('publish'))
    .description('publishes all documents of a folder; a version that is there with the same text stays as it is')
    .argument('<folder>', `with the folders ${KINDS.join(', ')}`)
    .option('--json', 'the outcome of each document as JSON')
    .action(async (folder: string, { json = false, ...options }: Json) => {
      const { publishFolder } = await import('../documents/publish-folder.ts');
      const published = await atPlatform(options, environment, (platform) => publishFolder(folder, platform, progress));
      if (json) return print(JSON.stringify(published, null, 2));
      for (const { kind, id, version, outcome } of published) print(`${kind}/${id} version ${version}: ${outcome}`);
    });

  withTarget(documents.command('list'))
    .description('lists the documents of a kind, with the newest version of each')
    .addArgument(new Argument('<kind>', 'of the documents').choices(KINDS))
    .option('--json', 'as a JSON array')
    .action(async (kind: string, { json = false, ...options }: Json) => {
      const { listDocuments } = await import('../documents/list-documents.ts');
      const found = await atPlatform(options, environment, (platform) => listDocuments(kind, platform));
      if (json) return print(JSON.stringify(found, null, 2));
      const rows = found.map(({ id, versions, newest }) => [id, String(versions), String(newest.version), newest.published_at]);
      for (const line of rows.length === 0 ? [`There are no ${kind}.`] : tableLines(HEAD, rows, columns)) print(line);
    });
}

async function atPlatform<T>(options: TargetOptions, environment: Environment, work: (platform: Target) => Promise<T>): Promise<T> {
  const [{ findPlatform }, { askTarget }] = await Promise.all([import('../targets.ts'), import('../ask-target.ts')]);
  const platform = await findPlatform(options, environment);
  return askTarget(platform, null, () => work(platform));
}
