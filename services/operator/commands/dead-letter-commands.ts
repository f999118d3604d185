import { type Command, Option } from 'commander';
import { type DeadLetter, listDeadLetters, type Source, sources } from '../dead-letters.ts';
import type { Replayed } from '../replay-dead-letter.ts';
import { type CommandDeps, printable, wholeNumber } from './dependencies.ts';
import { tableLines } from './table-lines.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 10_000;
const MAX_REASON_CHARACTERS = 120;

export function addDeadLetterCommands(program: Command, { openDatabase, openBus, openTags, print, columns, clock }: CommandDeps): void {
  const deadLetters = program.command('dead-letters').description('commands, deliveries, events, calls and usage records that were given up');
  const bySource = new Option('--source <source>', 'only of this kind').choices(sources);

  deadLetters
    .command('list')
    .description('lists dead letters, newest first')
    .option('--json', 'as a JSON array, with their bodies')
    .addOption(bySource)
    .option('--limit <count>', `most rows to list, up to ${MAX_LIMIT}`, wholeNumber(1, MAX_LIMIT), DEFAULT_LIMIT)
    .action(async ({ json = false, source = null, limit }: { json?: boolean; source?: Source | null; limit: number }) => {
      const letters = await listDeadLetters(await openDatabase(), { source, limit });
      if (json) return print(JSON.stringify(letters.map(toJson), null, 2));
      for (const line of tableOf(letters, columns)) print(line);
    });

  deadLetters
    .command('replay')
    .description('repeats a delivery, an event, a command or a usage record, and removes its dead letter')
    .argument('<id>', 'as the list names it')
    .addOption(bySource)
    .option('--json', 'the result as JSON')
    .action(async (id: string, { source = null, json = false }: { source?: Source | null; json?: boolean }) => {
      const { replayDeadLetter } = await import('../replay-dead-letter.ts');
      const replayed = await replayDeadLetter(id, source, { database: await openDatabase(), bus: await openBus(), openTags, clock });
      print(json ? JSON.stringify({ id, ...replayed }) : resultLine(id, replayed));
    });
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

function tableOf(letters: readonly DeadLetter[], columns: number | null): string[] {
  if (letters.length === 0) return ['There are no dead letters.'];
  const rows = letters.map(({ id, source, createdAt, reason }) => [id, source, createdAt, oneLine(reason)]);
  return tableLines(['ID', 'SOURCE', 'DIED AT', 'REASON'], rows, columns);
}

function oneLine(reason: string): string {
  const line = printable(reason);
  return line.length <= MAX_REASON_CHARACTERS ? line : `${line.slice(0, MAX_REASON_CHARACTERS)}…`;
}
