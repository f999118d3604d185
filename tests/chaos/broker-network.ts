import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isTooOldForReplicas } from '#bus/nats/cluster-version.ts';
import type { Relay } from '../../scripts/servers/start-cluster.mjs';
import { testProgram } from '../../scripts/servers/test-programs.mjs';
import { freePort } from '../../scripts/servers/test-tcp.mjs';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { type RunningProgram, runProgram } from '../helpers/run-program.ts';

/** The network between brokers, and from services to them, of which each broker can be cut off. */
export interface BrokerNetwork {
  relay: Relay;
  /** Nothing goes through to or from it any more, and no side is notified. */
  cutOff(broker: number): void;
  restore(broker: number): void;
  close(): Promise<void>;
}

/** Longer than a test. */
const IDLE = '1h';

/**
 * The brokers that this network can cut off need a server that keeps its messages then: an older one loses records of calls (docs/deploy.md), which would be
 * taken for a fault of the services.
 */
async function refuseOldServer(): Promise<void> {
  const program = await testProgram('nats');
  const { stdout } = await promisify(execFile)(program, ['--version']);
  const [version = stdout.trim()] = /\d+\.\d+\.\S+/.exec(stdout) ?? [];
  if (isTooOldForReplicas(version))
    throw new Error(`${program} is nats-server ${version}: this test needs 2.10.14 or newer. Put the folder of a newer nats-server first on the PATH`);
}

/** A process per way, paused while the way is cut: one in the process of the test would stand still with the test on a busy machine. */
export async function openBrokerNetwork(): Promise<BrokerNetwork> {
  await refuseOldServer();
  const folder = await freeFolder('broker-network');
  const program = await testProgram('haproxy');
  const ways: { ends: (number | 'services')[]; proxy: RunningProgram }[] = [];
  const signal = (broker: number, name: 'SIGSTOP' | 'SIGCONT') => {
    for (const { ends, proxy } of ways) if (ends.includes(broker)) proxy.signal(name);
  };
  return {
    relay: async (from, to, port) => {
      const own = await freePort();
      const path = join(folder, `${from}-${to}.cfg`);
      await writeFile(path, configuration(own, port));
      const proxy = runProgram([program, '-db', '-f', path]);
      ways.push({ ends: [from, to], proxy });
      await eventually(() => proxy.hasExited() || listens(own), { timeoutMs: 60_000 });
      if (proxy.hasExited()) throw new Error(`HAProxy has ended:\n${proxy.output()}`);
      return own;
    },
    cutOff: (broker) => signal(broker, 'SIGSTOP'),
    restore: (broker) => signal(broker, 'SIGCONT'),
    close: async () => {
      for (const { proxy } of ways) proxy.signal('SIGKILL');
      await Promise.all(ways.map(({ proxy }) => proxy.exited));
    },
  };
}

function configuration(own: number, target: number): string {
  return [
    'global',
    '  nbthread 1',
    '  maxconn 1000',
    'defaults',
    '  mode tcp',
    '  timeout connect 5s',
    `  timeout client ${IDLE}`,
    `  timeout server ${IDLE}`,
    'listen relay',
    `  bind 127.0.0.1:${own}`,
    `  server broker 127.0.0.1:${target}`,
    '',
  ].join('\n');
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
