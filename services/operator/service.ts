import { Command, InvalidArgumentError, Option } from 'commander';
import type { Bus } from '#bus/bus.ts';
import type { CommandTags } from '#bus/command-tags.ts';
import type { StreamUpgrade } from '#bus/stream-upgrade.ts';
import type { Clock } from '#shared/clock.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type DeadLetter, listDeadLetters, type Source, sources } from './dead-letters.ts';
import { playFolder } from './play-folder.ts';
import { replayCommand } from './replay-command.ts';
import { type Replayed, replayDeadLetter } from './replay-dead-letter.ts';
import { streamLines } from './stream-lines.ts';
import { validateManifest } from './validate-manifest.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 10_000;
const MAX_REASON_CHARACTERS = 120;

export interface OperatorDeps {
  /** Opened only by commands that need it, so `--help` works without settings. */
  openDatabase(): Promise<Database>;
  openBus(): Promise<Pick<Bus, 'work' | 'commands' | 'usage'>>;
  /** @throws `config.invalid` without HOUSE_SECRET */
  tags(): CommandTags;
  /** As the broker's user `operator`. */
  upgradeStreams(): Promise<StreamUpgrade[]>;
  environment: Environment;
  print(line: string): void;
  clock: Clock;
  log: Log;
}

interface ReplayArguments {
  manifest: string;
  documents?: string | null;
  from: number;
  json?: boolean;
}

interface TestArguments {
  manifest: string | null;
  documents: string | null;
  json: boolean;
}

/** The operator's command line. Actions throw a SwitchyardError with a message for people. */
export function operatorProgram({ openDatabase, openBus, tags, upgradeStreams, environment, print, clock, log }: OperatorDeps): Command {
  const program = new Command('operator').description('Command line for operators of a running Switchyard.');
  const deadLetters = program.command('dead-letters').description('commands, deliveries, events, calls and usage records that were given up');
  const bySource = new Option('--source <source>', 'only of this kind').choices(sources);

  deadLetters
    .command('list')
    .description('lists dead letters, newest first')
    .option('--json', 'as a JSON array, with their bodies')
    .addOption(bySource)
    .option('--limit <count>', `most rows to list, up to ${MAX_LIMIT}`, limitOf, DEFAULT_LIMIT)
    .action(async ({ json = false, source = null, limit }: { json?: boolean; source?: Source | null; limit: number }) => {
      const letters = await listDeadLetters(await openDatabase(), { source, limit });
      if (json) return print(JSON.stringify(letters.map(toJson), null, 2));
      for (const line of tableOf(letters)) print(line);
    });

  deadLetters
    .command('replay')
    .description('repeats a delivery, an event, a command or a usage record, and removes its dead letter')
    .argument('<id>', 'as the list names it')
    .addOption(bySource)
    .action(async (id: string, { source = null }: { source?: Source | null }) => {
      const replayed = await replayDeadLetter(id, source, { database: await openDatabase(), bus: await openBus(), tags, clock });
      print(resultLine(id, replayed));
    });

  program
    .command('streams')
    .description("creates the broker's streams, or changes them to the settings of this release; run it before the processes of a new release start")
    .action(async () => {
      const upgrades = await upgradeStreams();
      for (const line of streamLines(upgrades)) print(line);
      const refused = upgrades.filter(({ outcome }) => outcome === 'refused').map(({ name }) => name);
      if (refused.length > 0)
        throw new SwitchyardError('bus.stream_refused', `these streams could not be changed to what this release needs: ${refused.join(', ')}`);
    });

  program
    .command('validate')
    .description("checks an agent's manifest and documents as a start does, and starts nothing; lists every problem")
    .argument('<manifest>', 'its file')
    .option('--documents <folder>', 'default: `documents` beside the manifest')
    .option('--dump', 'prints the resolved configuration as JSON, with credentials redacted')
    .action(async (manifest: string, { documents = null, dump = false }: { documents?: string | null; dump?: boolean }) => {
      await validateManifest({ manifest, documents, dump }, { environment, print });
    });

  program
    .command('test')
    .description("plays the scenarios of a folder with an agent's documents, and compares its decisions with those that they expect; calls no tool")
    .argument('<folder>', 'a scenario per file')
    .option('--manifest <file>', 'default: `manifest.yaml` beside the folder')
    .option('--documents <folder>', 'default: `documents` beside the manifest')
    .option('--json', 'as JSON, with all decisions')
    .action(async (folder: string, { manifest = null, documents = null, json = false }: Partial<TestArguments>) => {
      await playFolder({ folder, manifest, documents, json }, { environment, print, clock, log });
    });

  program
    .command('replay')
    .description('plays the messages of a stored session with other documents, and prints what is decided otherwise; writes nothing and calls no tool')
    .argument('<session>', 'its id')
    .requiredOption('--manifest <file>', "the other documents' manifest")
    .option('--documents <folder>', 'default: `documents` beside the manifest')
    .option('--from <offset>', 'from the first turn whose messages begin there, or later', offsetOf, 0)
    .option('--json', 'as JSON, with all decisions')
    .action(async (sessionId: string, { manifest, documents = null, from: fromOffset, json = false }: ReplayArguments) => {
      await replayCommand({ sessionId, manifest, documents, fromOffset, json }, { openDatabase, environment, print, clock, log });
    });
  return program;
}

function limitOf(text: string): number {
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_LIMIT}.`);
  return limit;
}

function offsetOf(text: string): number {
  const offset = Number(text);
  if (!Number.isSafeInteger(offset) || offset < 0) throw new InvalidArgumentError('It must be a whole number from 0.');
  return offset;
}

function resultLine(id: string, replayed: Replayed): string {
  switch (replayed.type) {
    case 'delivery':
    case 'event':
      return `${id} is posted again, as ${replayed.effectId}.`;
    case 'command':
      return `${id} is appended to the command log again, as ${replayed.commandId}.`;
    case 'usage':
      return `${id} is in the usage log again.`;
    case 'settled':
      return `${id} was delivered meanwhile: the dead letter is removed.`;
  }
}

function toJson({ id, source, partition, createdAt, reason, body }: DeadLetter) {
  return { id, source, partition, created_at: createdAt, reason, body };
}

function tableOf(letters: readonly DeadLetter[]): string[] {
  if (letters.length === 0) return ['There are no dead letters.'];
  const rows = [['ID', 'SOURCE', 'DIED AT', 'REASON'], ...letters.map(({ id, source, createdAt, reason }) => [id, source, createdAt, oneLine(reason)])];
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** Error texts may hold control characters, which a terminal must not get. */
function oneLine(reason: string): string {
  const line = reason.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ');
  return line.length <= MAX_REASON_CHARACTERS ? line : `${line.slice(0, MAX_REASON_CHARACTERS)}…`;
}
