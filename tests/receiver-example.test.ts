import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from './helpers/eventually.ts';
import { type RunningProgram, runProgram } from './helpers/run-program.ts';

const KEY = 'sk-agent-of-the-receiver';
const BEARER = { authorization: `Bearer ${KEY}` };
let receiver: RunningProgram;
let url: string;

beforeAll(async () => {
  receiver = runProgram([process.execPath, 'examples/receiver/receiver.mjs'], { env: { AGENT_API_KEY: KEY, PORT: '0' } });
  url = await eventually(() => /listening on (\S+)/.exec(receiver.output())?.[1], { timeoutMs: 60_000 });
});
// The file shares its process with others, which goes on behind its end.
afterAll(async () => {
  receiver?.signal('SIGTERM');
  await receiver?.exited;
});

async function post(body: string, headers: Record<string, string>): Promise<number> {
  return (await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(60_000) })).status;
}

function linesWith(text: string): number {
  return receiver
    .output()
    .split('\n')
    .filter((line) => line.includes(text)).length;
}

describe('examples/receiver', () => {
  it.each([
    ['no bearer', {}],
    ['another key', { authorization: 'Bearer sk-other' }],
    ['the beginning of the key', { authorization: `Bearer ${KEY.slice(0, -1)}` }],
    ['the key in another scheme', { authorization: `Basic ${KEY}` }],
  ])('refuses %s and acts on nothing', async (_, headers) => {
    expect(await post('{"run_id":"run_refused"}', headers)).toBe(401);
    expect(linesWith('run_refused')).toBe(0);
  });

  it('acts once on a callback that comes twice, and accepts both', async () => {
    const body = JSON.stringify({ run_id: 'run_twice', status: 'succeeded', output: {} });
    expect([await post(body, BEARER), await post(body, BEARER)]).toEqual([204, 204]);
    await eventually(() => linesWith('run_twice') === 1, { timeoutMs: 60_000 });
  });

  it('acts once on each event of a session, which its offset names', async () => {
    const of = (session: string) => ({ ...BEARER, 'x-session-id': session });
    const event = (offset: number) => JSON.stringify({ kind: 'status', status: 'event-of-the-receiver', offset });
    const posts = [post(event(0), of('ses_1')), post(event(0), of('ses_1')), post(event(1), of('ses_1')), post(event(0), of('ses_2'))];
    expect(await Promise.all(posts)).toEqual([204, 204, 204, 204]);
    await eventually(() => linesWith('event-of-the-receiver') === 3, { timeoutMs: 60_000 });
  });

  it('refuses what is no JSON and what is too long, and goes on', async () => {
    expect(await post('{', BEARER)).toBe(400);
    expect(await post(' '.repeat(5 * 1024 * 1024), BEARER).catch(() => 413)).toBe(413);
    expect(await post('{"run_id":"run_after"}', BEARER)).toBe(204);
  });

  it('does not start without the key', async () => {
    const keyless = runProgram([process.execPath, 'examples/receiver/receiver.mjs'], { env: { AGENT_API_KEY: undefined, PORT: '0' } });
    expect((await keyless.exited).code).toBe(1);
    expect(keyless.output()).toContain('AGENT_API_KEY is not set');
  });
});
