import { expect } from 'vitest';
import { z } from 'zod';
import { partitionOf } from '../../../bus/partition.ts';
import { eventually } from '../../helpers/eventually.ts';
import { type Environment, type NamedHost, TIMEOUT_MS } from '../environment.ts';
import { checkAuditor } from '../invariants.ts';
import { FIRST_MESSAGE } from '../patched-copy.ts';
import { joinHost, untilItOwns } from '../scenario.ts';

/** Enough that a host which joins three others owns the partition of at least one of them: it owns about a quarter. */
const SESSIONS = 48;
/** For the answer to a message that was sent when every partition had an owner. */
const ANSWER_MS = 15_000;

const sessionRecord = z.looseObject({ id: z.string() });
const eventsPage = z.array(z.looseObject({ offset: z.number(), kind: z.string(), text: z.string().optional() }));

/**
 * A host is paused with a commit in flight; another takes its partition over and goes on with the session; that one is killed as the first
 * resumes and sends its commit, and the first is killed when the commit is answered. Then only the rows are left, and the next owner loads them.
 * With the interim owner running, its state in memory would replace what an unfenced commit writes over its rows. The first host, which
 * rendezvous hashing prefers, would acquire the partition again and apply the same commands once more.
 *
 * @param folder of the program that the paused host runs: it reaches `commit.sending` only with the commit of `FIRST_MESSAGE`, and is killed when that is
 *   answered
 * @throws when the session's log, as its customer reads it, is not what was sent and answered
 */
export async function interimOwnerKilled(environment: Environment, folder: string): Promise<void> {
  const ids = await Promise.all(Array.from({ length: SESSIONS }, async () => sessionRecord.parse(accepted(await environment.client.post('/sessions', {}))).id));
  const paused = await environment.addHost({ FAIL_POINT: 'commit.sending:stop' }, folder);
  try {
    await untilItOwns(environment, paused);
    const owned = new Set(await partitionsOf(environment, paused));
    const id = ids.find((one) => owned.has(partitionOf(one)));
    if (id === undefined) throw new Error('the paused host owns none of the sessions');
    await loseBothOwners(environment, paused, id);
    try {
      await post(environment, id, 'three');
      const isWhole = async () => {
        expect(await textsIn(environment, id)).toEqual([FIRST_MESSAGE, 'two', 'three'].flatMap((text) => [text, environment.model.answerTo(text)]));
        return true;
      };
      await eventually(isWhole, { timeoutMs: ANSWER_MS });
    } catch (cause) {
      throw new Error('a customer does not read what was said and answered', { cause });
    }
    await checkAuditor(environment);
  } finally {
    if (!paused.hasExited()) await environment.end(paused, 'SIGKILL');
    await joinHost(environment);
    await environment.everyPartitionOwned(paused.name);
  }
}

async function loseBothOwners(environment: Environment, paused: NamedHost, id: string): Promise<void> {
  // Gateways wait for this commit meanwhile.
  const said = post(environment, id, FIRST_MESSAGE);
  await eventually(() => paused.output().includes('fail point commit.sending: SIGSTOP'), { timeoutMs: TIMEOUT_MS });
  await environment.everyPartitionOwned(paused.name);
  await said;
  await eventually(async () => (await textsIn(environment, id)).length === 2, { timeoutMs: TIMEOUT_MS });
  await post(environment, id, 'two');
  await eventually(async () => (await textsIn(environment, id)).length === 4, { timeoutMs: TIMEOUT_MS });
  const interim = await ownerOf(environment, id);
  await environment.end(interim, 'SIGKILL');
  paused.signal('SIGCONT');
  await eventually(() => paused.hasExited(), { timeoutMs: TIMEOUT_MS });
  expect((await environment.auditor.rejected(paused.name)) + (await environment.auditor.zombieCommits()), 'the commit was not sent').toBeGreaterThan(0);
  await environment.everyPartitionOwned(interim.name);
}

async function partitionsOf({ database }: Environment, { name }: NamedHost): Promise<number[]> {
  const { rows } = await database.query<{ p: number }>('select p from parts join chaos.names on names.host_id = parts.owner where names.name = $1', [name]);
  return rows.map(({ p }) => p);
}

async function ownerOf({ database, hosts }: Environment, sessionId: string): Promise<NamedHost> {
  const { rows } = await database.query<{ name: string }>('select name from parts join chaos.names on names.host_id = parts.owner where p = $1', [
    partitionOf(sessionId),
  ]);
  const owner = hosts().find(({ name }) => name === rows[0]?.name);
  if (owner === undefined) throw new Error(`nothing that runs owns the partition of ${sessionId}`);
  return owner;
}

async function post({ client }: Environment, sessionId: string, text: string): Promise<void> {
  accepted(await client.post(`/sessions/${sessionId}/events`, { kind: 'user_message', text, idempotency_key: `${sessionId}-${text}` }));
}

/** The messages of the customer and of the agent, as the customer reads them. */
async function textsIn({ client }: Environment, sessionId: string): Promise<string[]> {
  const events = eventsPage.parse(accepted(await client.get(`/sessions/${sessionId}/events?min_offset=0&limit=1000&wait_for_data=0`)));
  expect(events.map(({ offset }) => offset)).toEqual(events.map((_, index) => index));
  return events.flatMap(({ kind, text }) => (kind === 'user_message' || kind === 'assistant_message' ? [text ?? ''] : []));
}

function accepted({ status, body }: { status: number; body: unknown }): unknown {
  if (status < 200 || status > 299) throw new Error(`a request was answered ${status}: ${JSON.stringify(body)}`);
  return body;
}
