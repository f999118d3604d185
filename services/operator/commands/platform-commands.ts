import { Argument, type Command } from 'commander';
import type { TargetOptions } from '../targets.ts';
import { type CommandDeps, tableLines } from './dependencies.ts';
import { withTarget } from './target-options.ts';

type Json = TargetOptions & { json?: boolean };

/** As in addresses. */
const KINDS = ['prompts', 'routines', 'policies', 'glossaries', 'macros', 'variable-sets'];
const HEAD = ['ID', 'VERSIONS', 'NEWEST', 'PUBLISHED AT'];

/** Documents of agents that are published to a router, which is their platform. */
export function addPlatformCommands(program: Command, { environment, print }: CommandDeps): void {
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
      const [{ publishFolder }, { findPlatform }] = await Promise.all([import('../documents/publish-folder.ts'), import('../targets.ts')]);
      const published = await publishFolder(folder, await findPlatform(options, environment));
      if (json) return print(JSON.stringify(published, null, 2));
      for (const { kind, id, version, outcome } of published) print(`${kind}/${id} version ${version}: ${outcome}`);
    });

  withTarget(documents.command('list'))
    .description('lists the documents of a kind, with the newest version of each')
    .addArgument(new Argument('<kind>', 'of the documents').choices(KINDS))
    .option('--json', 'as a JSON array')
    .action(async (kind: string, { json = false, ...options }: Json) => {
      const [{ listDocuments }, { findPlatform }] = await Promise.all([import('../documents/list-documents.ts'), import('../targets.ts')]);
      const found = await listDocuments(kind, await findPlatform(options, environment));
      if (json) return print(JSON.stringify(found, null, 2));
      const rows = found.map(({ id, versions, newest }) => [id, String(versions), String(newest.version), newest.published_at]);
      for (const line of rows.length === 0 ? [`There are no ${kind}.`] : tableLines([HEAD, ...rows])) print(line);
    });
}
