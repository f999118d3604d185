import { expect } from 'vitest';
import { z } from 'zod';
import { partitionOf } from '../../../bus/partition.ts';
import { eventually } from '../../helpers/eventually.ts';
import { type NamedHost, PATIENCE_MS, type World } from '../environment.ts';
import { checkWitness } from '../invariants.ts';
import { drainHost, joinHost, untilItOwns } from '../scenario.ts';

/** So many that a host which joins three others has the partition of one of them: it has about a quarter of all. */
const SESSIONS = 48;
/** For the reply to a message that was sent when every partition had an owner. */
const ANSWER_MS = 15_000;

const sessionRecord = z.looseObject({ id: z.string() });
const eventsPage = z.array(z.looseObject({ offset: z.number(), kind: z.string(), text: z.string().optional() }));

/**
 * A host stands still with a commit on its way; another takes its partition over and goes on with the session; that one is killed in the
 * moment in which the first wakes and sends its commit. With the interim owner alive, its memory of the session would outlast what an
 * unfenced commit writes over its rows; now the rows are all that there is, and the next owner believes them.
 *
 * To be run without a load: the first commit of the host that appends an event has to be the one of the message.
 *
 * @param program that the paused host runs: its folder, and whether its commits are fenced; it reaches `commit.sending` only with commits
 *   that append events
 * @throws when the session's log, as its customer reads it, is not what was said and answered
 */
export async function interimOwnerKilled(world: World, { folder, isFenced }: { folder: string; isFenced: boolean }): Promise<void> {
  const ids = await Promise.all(Array.from({ length: SESSIONS }, async () => sessionRecord.parse(accepted(await world.client.post('/sessions', {}))).id));
  const paused = await world.addHost({ FAIL_POINT: 'commit.sending:stop' }, folder);
  try {
    await untilItOwns(world, paused);
    const owned = new Set(await partitionsOf(world, paused));
    const id = ids.find((one) => owned.has(partitionOf(one)));
    if (id === undefined) throw new Error('the paused host owns none of the sessions');
    await loseInterimOwner(world, paused, id);
    try {
      await say(world, id, 'three');
      const isWhole = async () => {
        expect(await heardIn(world, id)).toEqual(['one', 'two', 'three'].flatMap((text) => [text, world.model.answerTo(text)]));
        return true;
      };
      await eventually(isWhole, { timeoutMs: ANSWER_MS });
    } catch (cause) {
      throw new Error('a customer does not read what was said and answered', { cause });
    }
    await checkWitness(world);
  } finally {
    // A host without the fence does not drain as the product does.
    if (isFenced) await drainHost(world, paused);
    else await world.end(paused, 'SIGKILL');
    await joinHost(world);
    await world.everyPartitionOwned(paused.name);
  }
}

async function loseInterimOwner(world: World, paused: NamedHost, id: string): Promise<void> {
  // Gateways wait for this commit meanwhile.
  const said = say(world, id, 'one');
  await eventually(() => paused.output().includes('fail point commit.sending: SIGSTOP'), { timeoutMs: PATIENCE_MS });
  await world.everyPartitionOwned(paused.name);
  await said;
  await eventually(async () => (await heardIn(world, id)).length === 2, { timeoutMs: PATIENCE_MS });
  await say(world, id, 'two');
  await eventually(async () => (await heardIn(world, id)).length === 4, { timeoutMs: PATIENCE_MS });
  const interim = await ownerOf(world, id);
  await world.end(interim, 'SIGKILL');
  paused.signal('SIGCONT');
  await eventually(async () => (await world.witness.rejected(paused.name)) + (await world.witness.zombieCommits()) > 0, { timeoutMs: PATIENCE_MS });
  await world.everyPartitionOwned(interim.name);
}

async function partitionsOf({ database }: World, { name }: NamedHost): Promise<number[]> {
  const { rows } = await database.query<{ p: number }>('select p from parts join chaos.names on names.host_id = parts.owner where names.name = $1', [name]);
  return rows.map(({ p }) => p);
}

async function ownerOf({ database, hosts }: World, sessionId: string): Promise<NamedHost> {
  const { rows } = await database.query<{ name: string }>('select name from parts join chaos.names on names.host_id = parts.owner where p = $1', [
    partitionOf(sessionId),
  ]);
  const owner = hosts().find(({ name }) => name === rows[0]?.name);
  if (owner === undefined) throw new Error(`nothing that runs owns the partition of ${sessionId}`);
  return owner;
}

async function say({ client }: World, sessionId: string, text: string): Promise<void> {
  accepted(await client.post(`/sessions/${sessionId}/events`, { kind: 'user_message', text, idempotency_key: `${sessionId}-${text}` }));
}

/** What the customer and the agent have said, as the customer reads it. */
async function heardIn({ client }: World, sessionId: string): Promise<string[]> {
  const events = eventsPage.parse(accepted(await client.get(`/sessions/${sessionId}/events?min_offset=0&limit=1000&wait_for_data=0`)));
  expect(events.map(({ offset }) => offset)).toEqual(events.map((_, place) => place));
  return events.flatMap(({ kind, text }) => (kind === 'user_message' || kind === 'assistant_message' ? [text ?? ''] : []));
}

function accepted({ status, body }: { status: number; body: unknown }): unknown {
  if (status < 200 || status > 299) throw new Error(`a request was answered ${status}: ${JSON.stringify(body)}`);
  return body;
}
