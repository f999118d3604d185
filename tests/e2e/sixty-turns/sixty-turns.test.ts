import pg from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import type { ConversationEvent } from '../../../shared/contracts/agent/conversation-event.ts';
import { asCluster, type DeploymentUnderTest, inOneProcess, type Shape } from '../../helpers/deployment-under-test.ts';
import { eventually } from '../../helpers/eventually.ts';
import { MESSAGES } from './messages.ts';

interface Kind {
  shape: Shape;
  isStreaming: boolean;
}

interface Played {
  log: ConversationEvent[];
  /** Of the reply to the last message, as a reader of the stream sees them. */
  deltas: number;
  /** Of the session's snapshot at the end; null: the database can't be read. */
  snapshotBytes: number | null;
}

/** Rule 107: it does not grow with the conversation. */
const MAX_SNAPSHOT_BYTES = 4_096;
const TIMEOUT_MS = 300_000;
const WITH_READY = (event: ConversationEvent) => event.kind === 'status' && event.status === 'ready';

/** Compared with the others. */
const first: Kind = { shape: inOneProcess, isStreaming: false };
const others: readonly Kind[] = [
  { shape: asCluster, isStreaming: true },
  { shape: inOneProcess, isStreaming: true },
  { shape: asCluster, isStreaming: false },
];
const running: DeploymentUnderTest[] = [];
const played = new Map<Kind, Promise<Played>>();
afterAll(async () => {
  await Promise.all(running.map((deployment) => deployment.stop()));
}, 120_000);

/** Plays it once, in a deployment of its own. */
function playedBy(kind: Kind): Promise<Played> {
  const found = played.get(kind) ?? play(kind);
  played.set(kind, found);
  return found;
}

async function play({ shape, isStreaming }: Kind): Promise<Played> {
  const deployment = await shape.start({ STREAMING: String(isStreaming) }, PROCESSES);
  running.push(deployment);
  // Until then turns use the documents' own texts.
  await eventually(() => deployment.logLines().some(({ msg }) => msg === 'documents were evaluated'), { timeoutMs: TIMEOUT_MS });
  const { agent } = deployment;
  const { id } = await agent.createSession({ allow_greeting: false });
  let log: ConversationEvent[] = [];
  let deltas = 0;
  for (const [index, text] of MESSAGES.entries()) {
    const isLast = index === MESSAGES.length - 1;
    const before = log.length;
    const stream = isLast ? await agent.openStream(id, ({ data }) => data['status'] === 'ready' && Number(data['offset']) >= before) : null;
    const { offset } = await agent.postMessage(id, text);
    const turn = await eventually(async () => readTurn(deployment, id, offset), { timeoutMs: TIMEOUT_MS });
    log = [...log, ...turn];
    if (stream !== null) deltas = (await stream.frames).filter(({ event }) => event === 'delta').length;
  }
  return { log, deltas, snapshotBytes: await snapshotBytesOf(deployment, id) };
}

async function snapshotBytesOf({ cluster }: DeploymentUnderTest, id: string): Promise<number | null> {
  if (cluster === null) return null;
  const database = new pg.Client({ connectionString: cluster.postgres.url });
  await database.connect();
  try {
    const { rows } = await database.query<{ bytes: number }>('select octet_length(snapshot::text) as bytes from sessions where id = $1', [id]);
    return rows[0]?.bytes ?? null;
  } finally {
    await database.end();
  }
}

const PROCESSES = { 'router-gateway': 0, 'agent-gateway': 2, 'actor-host': 2, 'router-worker': 2, 'effect-worker': 1 };

/** Null: it is not over. */
async function readTurn({ agent }: DeploymentUnderTest, id: string, offset: number): Promise<ConversationEvent[] | null> {
  const events = await agent.poll(id, offset, '&limit=1000&wait_for_data=0');
  return events.some(WITH_READY) ? events : null;
}

/** Without ids and times. */
function comparable(log: readonly ConversationEvent[]): object[] {
  return log.map(({ id: _, created_at: __, trace_id: ___, ...rest }) => rest);
}

describe('a conversation of 60 turns with the sample agent', () => {
  it(
    'DESIGN 3: ends each turn with one reply and one ready, at dense offsets',
    async () => {
      const { log, deltas } = await playedBy(first);
      expect(MESSAGES).toHaveLength(60);
      expect(log.map(({ offset }) => offset)).toEqual(log.map((_, index) => index));
      const count = (kind: string) => log.filter((event) => event.kind === kind).length;
      expect([count('user_message'), count('assistant_message'), log.filter(WITH_READY).length]).toEqual([60, 60, 60]);
      expect(log.filter((event) => event.kind === 'status' && event.status === 'error')).toEqual([]);
      expect(deltas).toBe(0);
      // The policies and the routine have had a part in it.
      const said = log.flatMap((event) => (event.kind === 'assistant_message' ? [event.text] : [])).join('\n');
      for (const text of ['pull the plug', 'Ask what was wrong with it', 'a return label comes by e-mail', '249 euros']) expect(said).toContain(text);
    },
    TIMEOUT_MS,
  );

  it.each(others.map((kind) => ({ kind, name: `${kind.shape.name}, STREAMING=${kind.isStreaming}` })))(
    'DESIGN 3: has the same log but for ids and times: $name',
    async ({ kind }) => {
      const [one, other] = await Promise.all([playedBy(first), playedBy(kind)]);
      expect(comparable(other.log)).toEqual(comparable(one.log));
      if (kind.shape.isCluster) expect(other.snapshotBytes).toBeLessThanOrEqual(MAX_SNAPSHOT_BYTES);
      if (kind.isStreaming) expect(other.deltas).toBeGreaterThan(0);
      else expect(other.deltas).toBe(0);
    },
    TIMEOUT_MS,
  );
});
