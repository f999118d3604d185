import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { busUsers } from '../../bus/nats/permissions.ts';
import { natsServerConfig, passwordVariableOf } from '../../bus/nats/server-config.ts';
import { startCluster, startProcess } from './start-cluster.mjs';
import { closeRun, openRun } from './test-run.mjs';

it.each(busUsers)('starts nothing when the broker has no user %s', async (user) => {
  const natsConfig = natsServerConfig().replaceAll(`$${passwordVariableOf(user)}\n`, '"none"');

  await expect(startCluster({ counts: {}, environment: {}, natsConfig })).rejects.toThrow(
    `The configuration of NATS has no user with the password ${passwordVariableOf(user)}.`,
  );
});

/** Starts a process of a role that runs this program. */
async function start(program: string, silenceLimitMs = 6_000) {
  const folder = await mkdtemp(join(tmpdir(), 'switchyard-cluster-'));
  await mkdir(join(folder, 'dist/services/actor-host'), { recursive: true });
  await writeFile(join(folder, 'dist/services/actor-host/main.js'), program);
  const run = await openRun({ callerHandlesSignals: true });
  const env = { ...process.env, SWITCHYARD_READY_FILE: join(folder, 'ready.json') };
  try {
    // Far above the time to start Node on a busy machine.
    return await startProcess(run, { role: 'actor-host', index: 1, cwd: folder, env, silenceLimitMs });
  } finally {
    await closeRun(run);
    await rm(folder, { recursive: true });
  }
}

// These wait, so they wait together.
it.concurrent('waits for a process for as long as it reports progress', async ({ expect }) => {
  const facts = JSON.stringify({ pid: 1, managementUrl: 'http://127.0.0.1:1' });
  const slow = `let lines = 0;
    setInterval(() => {
      console.log('still starting');
      lines += 1;
      if (lines === 16) require('node:fs').writeFileSync(process.env.SWITCHYARD_READY_FILE, '${facts}');
    }, 500);`;

  expect(await start(slow)).toMatchObject({ role: 'actor-host', managementUrl: 'http://127.0.0.1:1' });
});

it.concurrent('names a process that makes none', async ({ expect }) => {
  await expect(start("console.log('connecting'); setInterval(() => {}, 1_000);", 15_000)).rejects.toThrow(
    /^actor-host-1 is not ready and has printed nothing for 15 s; before that:\nconnecting/,
  );
});
