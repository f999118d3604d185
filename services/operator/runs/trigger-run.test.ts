import { expect, it } from 'vitest';
import { createAgentClient } from '#client/agent-client.ts';
import { triggerRun } from './trigger-run.ts';

const TRIGGER = { routineId: 'triage', callbackUrl: 'https://hooks.example/x', input: { a: 1 }, sessionId: null };
const RUN = { run_id: 'run_1', routine_id: 'triage', session_id: 'ses_1', status: 'accepted', output: null, error: null, completed_at: null };
const SETTLED = { ...RUN, status: 'succeeded', output: { decision: 'covered' }, completed_at: '2026-01-01T00:00:00.000Z' };

/** A client whose requests are answered in order; a missing answer is a lost connection. */
function answeredBy(...answers: readonly ([status: number, body: object] | null)[]) {
  const rest = [...answers];
  const bodies: Record<string, unknown>[] = [];
  const fetch: typeof globalThis.fetch = async (_input, { body } = {}) => {
    if (typeof body === 'string') bodies.push(JSON.parse(body));
    const answer = rest.shift();
    if (answer == null) throw new TypeError('fetch failed');
    return Response.json(answer[1], { status: answer[0] });
  };
  const lines: string[] = [];
  const shown: string[] = [];
  const client = createAgentClient({ baseUrl: 'http://agent.test', apiKey: 'k', fetch, timings: { retryMs: 1 } });
  return { deps: { client, print: (line: string) => void lines.push(line), progress: (text: string) => void shown.push(text) }, lines, shown, bodies };
}

it('starts one run though the answer is lost: a repetition has the same key, and gets the first run', async () => {
  const { deps, lines, bodies } = answeredBy(null, [409, { ...RUN, error: 'duplicate idempotency_key', code: 'conflict' }], [200, RUN]);

  await triggerRun(TRIGGER, { wait: false, json: false }, deps);

  expect(lines).toEqual(['run_1 is accepted, in session ses_1.']);
  expect(bodies).toHaveLength(2);
  expect(bodies[0]).toMatchObject({ input: { a: 1 }, callback_url: 'https://hooks.example/x', idempotency_key: expect.stringMatching(/^[0-9a-f]{32}$/) });
  expect(bodies[1]).toEqual(bodies[0]);
});

it('waits until the run has ended, and prints its output', async () => {
  const { deps, lines, shown } = answeredBy([202, RUN], [200, { ...RUN, status: 'running' }], [200, SETTLED]);

  await triggerRun(TRIGGER, { wait: true, json: false }, deps);

  expect(JSON.parse(lines.join(''))).toEqual({ decision: 'covered' });
  expect(shown).toEqual(['run_1 is running']);
});

it('fails with the error of a run that has failed, which no repetition mends', async () => {
  const failed = { ...SETTLED, status: 'failed', output: null, error: { code: 'timeout', message: 'it took too long', details: {} } };
  const { deps, lines } = answeredBy([202, RUN], [200, failed]);

  await expect(triggerRun(TRIGGER, { wait: true, json: true }, deps)).rejects.toMatchObject({
    code: 'timeout',
    message: 'run_1 has failed: it took too long',
    isTransient: false,
  });
  expect(JSON.parse(lines.join(''))).toMatchObject({ status: 'failed' });
});

it('fails with another conflict as it is', async () => {
  const { deps } = answeredBy([409, { error: 'the session is closed', code: 'conflict' }]);

  await expect(triggerRun(TRIGGER, { wait: false, json: false }, deps)).rejects.toMatchObject({ code: 'conflict', message: 'the session is closed' });
});
