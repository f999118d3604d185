import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Standalone, startStandalone } from '../helpers/start-standalone.ts';

let house: Standalone;

beforeAll(async () => {
  house = await startStandalone();
});

afterAll(async () => {
  await house.stop();
});

describe('what npm start prints', () => {
  it('says what runs where, with both keys, and that a script answers', () => {
    const told = house.output();

    for (const fact of [`${house.routerUrl}/api/v1`, house.agentUrl, house.keys.routerKey, house.keys.agentKey, 'scripted/assistant', 'OPENAI_API_KEY']) {
      expect(told).toContain(fact);
    }
  });

  it('has a line for the router that streams an answer when it is pasted into a shell', async () => {
    const { stdout } = await paste('curl -N ');

    expect(stdout).toMatch(/^id: gen-/);
    expect(stdout).toMatch(/data: \[DONE\]\n\n$/);
  });

  it('has a line for the agent that gets an answer when it is pasted into a shell', async () => {
    const { stdout } = await paste('A=');

    expect(JSON.parse(stdout)).toMatchObject([{ kind: 'assistant_message', text: expect.stringMatching(/2 years/) }]);
  });
});

function paste(start: string): Promise<{ stdout: string }> {
  const line = house
    .output()
    .split('\n')
    .find((each) => each.startsWith(start));
  if (line === undefined) throw new Error(`no line begins with '${start}'`);
  return promisify(execFile)('bash', ['-c', line], { timeout: 30_000 });
}
