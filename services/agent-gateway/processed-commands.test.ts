import { expect, it } from 'vitest';
import type { Database } from '#shared/storage/database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { ProcessedCommands } from './processed-commands.ts';

/** A double of the statement that reads processed commands; records its parameters. */
function databaseOf(reply: (commandId: string) => unknown) {
  const asked: string[][] = [];
  const database: Pick<Database, 'query'> = {
    query: async <Row>(_statement: unknown, parameters?: readonly unknown[]) => {
      const commandIds = (parameters?.[1] ?? []) as string[];
      asked.push(commandIds);
      const rows = commandIds.flatMap((commandId) => {
        const found = reply(commandId);
        return found === undefined ? [] : [{ session_id: 's', command_id: commandId, answer: found }];
      });
      return { rows: rows as Row[], rowCount: rows.length };
    },
  };
  return { asked, database: database as Database };
}

it('returns null while the database can not be read, and reads again the next time', async () => {
  let isAway = true;
  const { database } = databaseOf(() => {
    if (isAway) throw new Error('connection lost');
    return { ok: true, value: {} };
  });
  const rows = new ProcessedCommands({ database, log: silentLog });

  expect(await rows.read('s', 'c')).toBeNull();
  isAway = false;
  expect(await rows.read('s', 'c')).toEqual({ ok: true, value: {} });
});

it('returns null for a missing row, an empty one, or an invalid reply', async () => {
  const stored: Record<string, unknown> = { empty: null, other: { ok: 'perhaps' } };
  const rows = new ProcessedCommands({ database: databaseOf((commandId) => stored[commandId]).database, log: silentLog });

  expect(await Promise.all(['none', 'empty', 'other'].map((commandId) => rows.read('s', commandId)))).toEqual([null, null, null]);
});

it('accepts a refusal with an unknown code', async () => {
  const { database } = databaseOf(() => ({ ok: false, code: 'session.from_the_future', message: 'no' }));

  expect(await new ProcessedCommands({ database, log: silentLog }).read('s', 'c')).toEqual({ ok: false, code: 'internal', message: 'no' });
});

it('reads a thousand in one statement, and more in bounded ones', async () => {
  const { database, asked } = databaseOf((commandId) => ({ ok: true, value: { commandId } }));
  const rows = new ProcessedCommands({ database, log: silentLog });
  const commandIds = Array.from({ length: 2_500 }, (_, n) => `c-${n}`);

  const replies = await Promise.all(commandIds.map((commandId) => rows.read('s', commandId)));

  expect(asked.map((batch) => batch.length)).toEqual([1_000, 1_000, 500]);
  expect(replies).toEqual(commandIds.map((commandId) => ({ ok: true, value: { commandId } })));
});
