import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { get, type PostedRequest, post } from '../../services/router-gateway/test-support/http-client.ts';
import { readEvents } from '../../shared/surfaces/responses/test-support/read-events.ts';
import { eventually } from '../helpers/eventually.ts';
import { readStream, receivedOf } from '../helpers/read-stream.ts';
import { OTHER_KEY, openScriptedProviders, plannedCall, plannedRequests, requestFor, type ScriptedProviders } from '../helpers/scripted-deployment.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import type { Plan, Step } from '../upstreams/scripted-upstream.ts';

/** For 30 s the client may resume. The promise of 35 s is asserted in tests/chaos, by the files that assert times. */
const UNREAD_AT_LEAST_MS = 20_000;
/** Shorter than whatever else would end these calls: their words, and their timeout. */
const TIMEOUT = { timeoutMs: 90_000 };
const ended: Step[] = ['finish', 'usage', 'done', 'end'];
const words = (times: number) => Array.from({ length: times }, (_, index) => `word${index} `).join('');

interface Asked {
  plan: Plan;
  client: PostedRequest;
}

let providers: ScriptedProviders;
let cluster: Cluster;
/** The gateway that is killed; the one at which its clients resume. */
let gateway: string;
let elsewhere: string;

function ask(url: string, plan: Plan, { stream = true, headers = {} }: { stream?: boolean; headers?: Record<string, string> } = {}): Asked {
  const client = post(`${url}/api/v1/chat/completions`, requestFor(plan, 'first', stream), { authorization: `Bearer ${cluster.keys.routerKey}`, ...headers });
  // Some clients get nothing from a gateway that is killed.
  client.answer.catch(() => {});
  return { plan, client };
}

/** The same call in the dialect of /responses. */
function askResponse(url: string, plan: Plan): Asked {
  const { messages: input, ...request } = requestFor(plan, 'first', true);
  const client = post(`${url}/api/v1/responses`, { ...request, input }, { authorization: `Bearer ${cluster.keys.routerKey}` });
  client.answer.catch(() => {});
  return { plan, client };
}

const numbersIn = (text: string) => readEvents(text).map(({ sequence_number }) => sequence_number);

function resume(callId: string, headers: Record<string, string> = {}, key = cluster.keys.routerKey) {
  return get(`${elsewhere}/api/v1/generations/${callId}/stream`, { authorization: `Bearer ${key}`, ...headers });
}

const callsOf = ({ plan }: Asked) => providers.upstream.calls(plan.name);
const saidOf = (asked: Asked) => callsOf(asked)[0]?.said ?? 0;

/** The bytes of a complete stream. */
async function wholeStream({ client }: Asked): Promise<string> {
  const answer = await client.answer;
  expect(await answer.ended).toBe(true);
  return answer.text;
}

beforeAll(async () => {
  providers = await openScriptedProviders();
  cluster = await startCluster({
    roles: { 'router-gateway': 2, 'actor-host': 0, 'agent-gateway': 0, 'effect-worker': 0 },
    env: { ...providers.settings, LOG_LEVEL: 'info' },
  });
  [gateway = '', elsewhere = ''] = cluster.routerUrls;
});

afterAll(async () => {
  await cluster.stop();
  await providers.close();
});

// The two kills overlap, since the recovery from each takes time.
describe('a worker is killed, and then a gateway', () => {
  let unshown: Asked;
  let shown: Asked;
  let shownResponse: Asked;
  let interruptedResponse: Asked;
  let accumulated: Asked;
  let interrupted: Asked[];
  let forsaken: Asked[];
  let detached: Asked;
  let killedAtMs: number;

  beforeAll(async () => {
    const again: Step[] = [{ say: 'word', times: 20 }, ...ended];
    unshown = ask(elsewhere, plannedRequests({ first: [['headers', 'hold'], again] }));
    shown = ask(elsewhere, plannedRequests({ first: [[{ say: 'word', times: 3 }, 'hold'], again] }));
    shownResponse = askResponse(elsewhere, plannedRequests({ first: [[{ say: 'word', times: 3 }, 'hold'], again] }));
    accumulated = ask(elsewhere, plannedRequests({ first: [[{ say: 'word', times: 3 }, 'hold'], again] }), { stream: false });
    await eventually(() => callsOf(unshown).length === 1 && saidOf(shown) === 3 && saidOf(shownResponse) === 3 && saidOf(accumulated) === 3);
    const shownSoFar = await Promise.all([shown.client.answer, shownResponse.client.answer]);
    await eventually(() => shownSoFar.every(({ text }) => text.includes('word2')));
    const [worker] = cluster.running('router-worker');
    await cluster.add('router-worker');
    worker?.signal('SIGKILL');
    await worker?.exited;

    // From fast to slow: some are cut between two frames, some in the middle of a write.
    interrupted = [1, 2, 5, 10, 20].map((everyMs) => ask(gateway, plannedCall({ first: [{ say: 'word', times: 4_000 / everyMs, everyMs }, ...ended] })));
    interruptedResponse = askResponse(gateway, plannedCall({ first: [{ say: 'word', times: 800, everyMs: 5 }, ...ended] }));
    const endless: Step[] = [{ say: 'word', times: 10_000, everyMs: 100 }];
    forsaken = [true, true, false].map((stream) => ask(gateway, plannedCall({ first: endless }), { stream }));
    detached = ask(gateway, plannedCall({ first: [{ say: 'word', times: 50, everyMs: 100 }, ...ended] }), { headers: { 'x-detach': 'true' } });
    await eventually(() => [...interrupted, interruptedResponse, ...forsaken, detached].every((asked) => saidOf(asked) > 5));
    const answers = await Promise.all([...interrupted, interruptedResponse, detached].map(({ client }) => client.answer));
    await eventually(() => answers.every(({ text }) => text.includes('word5')));
    const [victim] = cluster.running('router-gateway');
    expect(victim?.url).toBe(gateway);
    killedAtMs = performance.now();
    victim?.signal('SIGKILL');
    await victim?.exited;
  });

  it('DESIGN 7: a stream that was cut with its gateway goes on at another, and is byte for byte what one gateway would have sent', async () => {
    for (const { client, plan } of interrupted) {
      const answer = await client.answer;
      expect(await answer.ended).toBe(false);
      const received = receivedOf(answer.text);
      const lastId = readStream(received).ids.at(-1) ?? '';
      const rest = await resume(String(answer.headers['x-generation-id']), { 'last-event-id': lastId });
      expect(rest.status).toBe(200);
      expect(await rest.ended).toBe(true);
      const whole = await resume(String(answer.headers['x-generation-id']));
      expect(await whole.ended).toBe(true);

      expect(received + rest.text).toBe(whole.text);
      const times = plan.scripts.first?.[0]?.flatMap((step) => (typeof step === 'object' && 'say' in step ? [step.times ?? 1] : []))[0] ?? 0;
      expect(readStream(whole.text)).toMatchObject({ text: words(times), ends: ['done'], behindEnd: 0, finishes: ['stop'], usages: 1 });
      expect(callsOf({ client, plan })).toHaveLength(1);
    }
  });

  it('DESIGN 7: a stream of /responses that was cut with its gateway goes on at another, and its events are numbered without a gap', async () => {
    const answer = await interruptedResponse.client.answer;
    expect(await answer.ended).toBe(false);
    const received = receivedOf(answer.text);
    const lastId = received.slice(received.lastIndexOf('id: ') + 'id: '.length).split('\n', 1)[0] ?? '';
    const rest = await resume(String(answer.headers['x-generation-id']), { 'last-event-id': lastId });
    expect([rest.status, await rest.ended]).toEqual([200, true]);

    const events = readEvents(received + rest.text);
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { output_text: words(800) } });
    expect(callsOf(interruptedResponse)).toHaveLength(1);
  });

  it('DESIGN 7: a call that its client detached goes on though its gateway dies and it has no reader, and can be read afterwards', async () => {
    const { headers } = await detached.client.answer;
    await eventually(() => saidOf(detached) === 50);
    const whole = await resume(String(headers['x-generation-id']));

    expect(await whole.ended).toBe(true);
    expect(readStream(whole.text)).toMatchObject({ text: words(50), ends: ['done'], behindEnd: 0 });
    expect(callsOf(detached)).toMatchObject([{ leftAtMs: null }]);
  });

  it('DESIGN 7: a call that its client detached goes on when its client leaves', async () => {
    const asked = ask(elsewhere, plannedCall({ first: [{ say: 'word', times: 20, everyMs: 50 }, ...ended] }), { headers: { 'x-detach': 'true' } });
    const answer = await asked.client.answer;
    asked.client.leave();
    await eventually(() => saidOf(asked) === 20);
    const whole = await resume(String(answer.headers['x-generation-id']));

    expect(await whole.ended).toBe(true);
    expect(readStream(whole.text)).toMatchObject({ text: words(20), ends: ['done'] });
    expect(callsOf(asked)).toMatchObject([{ leftAtMs: null }]);
  });

  it('DESIGN 7: another key, a wrong tag, an unknown id and an id of another stream’s event get the same 404', async () => {
    const callId = String((await detached.client.answer).headers['x-generation-id']);
    const other = String((await interrupted[0]?.client.answer)?.headers['x-generation-id']);
    const lastLetter = callId.at(-1) === 'a' ? 'b' : 'a';
    const answers = await Promise.all([
      resume(callId, {}, OTHER_KEY),
      resume(`${callId.slice(0, -1)}${lastLetter}`),
      resume('gen-g0123456789ab-01ARZ3NDEKTSV4RRFFQ69G5FAV-aaaaaaaaaaaaaaaa'),
      resume('nothing'),
      resume(callId, { 'last-event-id': `${other}.1.1` }),
    ]);
    await Promise.all(answers.map(({ ended: isEnded }) => isEnded));

    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 404));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(JSON.parse(answers[0]?.text ?? '')).toMatchObject({ error: { code: 404, type: 'not_found' } });
  });

  it('DESIGN 7: a call of which nothing was shown is made again by another worker when its own dies, and its client sees one whole answer', async () => {
    const streamed = await wholeStream(unshown);

    expect(readStream(streamed)).toMatchObject({ text: words(20), ends: ['done'], behindEnd: 0, finishes: ['stop'], usages: 1 });
    expect(callsOf(unshown)).toHaveLength(2);
    const answer = await accumulated.client.answer;
    expect(await answer.ended).toBe(true);
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.text)).toMatchObject({ choices: [{ message: { content: words(20) }, finish_reason: 'stop' }] });
    expect(callsOf(accumulated)).toHaveLength(2);
  });

  it('DESIGN 7: a stream of which a part was shown ends with the error chunk when its worker dies, without a gap, a repeat or a second call', async () => {
    const streamed = await wholeStream(shown);

    expect(readStream(streamed)).toMatchObject({ text: words(3), ends: [502], behindEnd: 0, finishes: ['error'] });
    expect(callsOf(shown)).toHaveLength(1);
  });

  it('DESIGN 7: a stream of /responses of which a part was shown ends with an error event when its worker dies, with the number that follows', async () => {
    const streamed = await wholeStream(shownResponse);
    const numbers = numbersIn(streamed);

    expect(numbers).toEqual(numbers.map((_, index) => index));
    expect(readEvents(streamed).at(-1)).toMatchObject({
      type: 'error',
      code: 'server_error',
      error_type: 'provider_unavailable',
      error: { code: 'server_error' },
    });
    expect(callsOf(shownResponse)).toHaveLength(1);
  });

  it('DESIGN 7: streams that the broker is lost to in their middle end in exactly one of [DONE] and the error chunk, and leave nothing out', async () => {
    const begun = [10, 50, 200].map((everyMs) => ask(elsewhere, plannedCall({ first: [{ say: 'word', times: 3_000 / everyMs, everyMs }, ...ended] })));
    const waiting = ask(elsewhere, plannedCall({ first: ['headers', { pauseMs: 3_000 }, { say: 'word', times: 20 }, ...ended] }));
    await eventually(() => begun.every((asked) => saidOf(asked) > 3) && callsOf(waiting).length === 1);
    await cluster.nats.kill();
    await cluster.nats.start();

    for (const asked of [...begun, waiting]) {
      const answer = await asked.client.answer;
      expect(await answer.ended).toBe(true);
      // A call of which nothing was streamed may report the loss by its status.
      if (answer.status !== 200 && asked === waiting) continue;
      const { text, ends, behindEnd } = readStream(answer.text);
      expect({ status: answer.status, ends: ends.length, behindEnd }).toEqual({ status: 200, ends: 1, behindEnd: 0 });
      const all = words(saidOf(asked));
      expect(text).toBe(ends[0] === 'done' ? all : all.slice(0, text.length));
    }
  });

  it('DESIGN 7: calls of a dead gateway that are not resumed go on for half a minute, and then their upstreams are closed', async () => {
    await eventually(() => forsaken.every((asked) => callsOf(asked)[0]?.leftAtMs), TIMEOUT);
    const openForMs = forsaken.map((asked) => Math.round((callsOf(asked)[0]?.leftAtMs ?? 0) - killedAtMs));
    console.info(`calls of a dead gateway that were not resumed were closed after ${openForMs.join(', ')} ms`);

    expect(Math.min(...openForMs)).toBeGreaterThan(UNREAD_AT_LEAST_MS);
    expect(forsaken.flatMap(callsOf)).toHaveLength(forsaken.length);
  });
});
