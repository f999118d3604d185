import type { Command } from 'commander';
import { type CommandDeps, printable, wholeNumber } from './dependencies.ts';

const DOCUMENTS = ['--documents <folder>', 'default: `documents` beside the manifest'] as const;

interface ReplayArguments {
  manifest: string;
  documents?: string | null;
  from: number;
  json?: boolean;
}

interface ValidateArguments {
  documents?: string | null;
  dump?: boolean;
  strict?: boolean;
  json?: boolean;
}

interface TestArguments {
  manifest: string | null;
  documents: string | null;
  json: boolean;
}

/** What is done with an agent's manifest and documents. */
export function addDocumentCommands(program: Command, { openDatabase, openLog, environment, print, progress, clock }: CommandDeps): void {
  program
    .command('validate')
    .description("checks an agent's manifest and documents as a start does, and starts nothing; lists every problem, and variables that are not set here")
    .argument('<manifest>', 'its file')
    .option(...DOCUMENTS)
    .option('--dump', 'prints the resolved configuration as JSON, with credentials redacted')
    .option('--strict', 'a variable that is not set here is a problem, as at a start')
    .option('--json', 'problems and warnings as JSON')
    .action(async (manifest: string, { documents = null, dump = false, strict = false, json = false }: ValidateArguments) => {
      const { validateManifest } = await import('../validate-manifest.ts');
      await validateManifest({ manifest, documents, dump, strict, json }, { environment, print });
    });

  program
    .command('test')
    .description("plays the scenarios of a folder with an agent's documents, and compares its decisions with those that they expect; calls no tool")
    .argument('<folder>', 'a scenario per file')
    .option('--manifest <file>', 'default: `manifest.yaml` beside the folder')
    .option(...DOCUMENTS)
    .option('--json', 'as JSON, with all decisions')
    .action(async (folder: string, { manifest = null, documents = null, json = false }: Partial<TestArguments>) => {
      const { playFolder } = await import('../play-folder.ts');
      await playFolder({ folder, manifest, documents, json }, { environment, print, progress, clock, log: await openLog() });
    });

  program
    .command('replay')
    .description('plays the messages of a stored session with other documents, and prints what is decided otherwise; writes nothing and calls no tool')
    .argument('<session>', 'its id')
    .requiredOption('--manifest <file>', "the other documents' manifest")
    .option(...DOCUMENTS)
    .option('--from <offset>', 'from the first turn whose messages begin there, or later', wholeNumber(0, Number.MAX_SAFE_INTEGER), 0)
    .option('--json', 'as JSON, with all decisions')
    .action(async (sessionId: string, { manifest, documents = null, from: fromOffset, json = false }: ReplayArguments) => {
      const { replayCommand } = await import('../replay-command.ts');
      progress(`playing the messages of ${printable(sessionId)}`);
      await replayCommand({ sessionId, manifest, documents, fromOffset, json }, { openDatabase, environment, print, clock, log: await openLog() });
    });
}
