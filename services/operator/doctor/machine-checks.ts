import { once } from 'node:events';
import { constants } from 'node:fs';
import { access, readFile, statfs } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import type { Environment } from '#shared/config/secret-ref.ts';
import { dataFolder, runningServer } from '../targets.ts';
import { type Check, type Finding, ok, problem } from './finding.ts';

/** An idle deployment grows by its logs and snapshots. Only the data folder is looked at: the disks of a broker and a database elsewhere are for the monitoring of their machines. */
const LOW_DISK_BYTES = 1_024 ** 3;
const FULL_DISK_BYTES = 100 * 1_024 ** 2;

/** What `start` needs of the machine: Node, ports, disk. With a database of its own, as in a container, a deployment has no data folder and other ports. */
export function machineChecks(environment: Environment): Check[] {
  const node: Check = { name: 'node', fix: 'reinstall Switchyard: its package.json is missing', run: checkNode };
  if (environment['DATABASE_URL'] && !environment['DATA_DIR']) return [node];
  return [
    node,
    { name: 'ports', fix: 'set ROUTER_PORT and AGENT_PORT to free ports', run: () => checkPorts(environment) },
    { name: 'disk', fix: 'set DATA_DIR to a folder that this user may write', run: () => checkDisk(dataFolder(environment)) },
  ];
}

async function checkNode(): Promise<Omit<Finding, 'check'>[]> {
  // `dist/` is a folder deeper than the sources.
  const texts = await Promise.allSettled(['../../../package.json', '../../../../package.json'].map((path) => readFile(new URL(path, import.meta.url), 'utf8')));
  const found = texts.find((one) => one.status === 'fulfilled');
  if (found === undefined) throw new Error('the package.json of Switchyard can not be read');
  const { engines } = JSON.parse(found.value);
  const wanted = String(engines.node);
  const version = process.versions.node;
  return [
    satisfies(version, wanted) ? ok(`Node ${version}`) : problem('failed', `Node ${version}; needed is ${wanted}`, 'install the newest release of Node 24'),
  ];
}

/** @param range `>=a.b.c` and `^a.b.c`, joined by `||` */
export function satisfies(version: string, range: string): boolean {
  const numbers = (text: string) => text.split('.').map(Number);
  const isAtLeast = (given: number[], least: number[]) => {
    for (const index of [0, 1, 2]) {
      const difference = (given[index] ?? 0) - (least[index] ?? 0);
      if (difference !== 0) return difference > 0;
    }
    return true;
  };
  return range.split('||').some((part) => {
    const [, sign, least = ''] = /^\s*(>=|\^)([\d.]+)\s*$/.exec(part) ?? [];
    if (sign === undefined) return false;
    return isAtLeast(numbers(version), numbers(least)) && (sign === '>=' || numbers(version)[0] === numbers(least)[0]);
  });
}

async function checkPorts(environment: Environment): Promise<Omit<Finding, 'check'>[]> {
  const running = await runningServer(dataFolder(environment));
  if (running !== null)
    return [ok(`process ${running.pid} ${running.isCluster ? 'runs a cluster, with' : 'serves'} ${[...running.router, ...running.agent].join(' and ')}`)];
  const host = environment['HOST'] || '127.0.0.1';
  const ports = [
    ['ROUTER_PORT', Number(environment['ROUTER_PORT'] || 3_000)],
    ['AGENT_PORT', Number(environment['AGENT_PORT'] || 8_080)],
  ] as const;
  return Promise.all(
    ports.map(async ([variable, port]) => {
      const refusal = await whyNotFree(host, port);
      return refusal === null
        ? ok(`${host}:${port} is free`)
        : problem('failed', `${host}:${port} can not be used: ${refusal}`, `end the program that uses it, or set ${variable}`);
    }),
  );
}

/** Null: it is free. */
async function whyNotFree(host: string, port: number): Promise<string | null> {
  const server = createServer();
  try {
    server.listen({ host, port, exclusive: true });
    await once(server, 'listening');
    return null;
  } catch (error) {
    return Object(error).code === 'EADDRINUSE' ? 'another program listens there' : String(Object(error).code ?? error);
  } finally {
    server.close();
  }
}

async function checkDisk(folder: string): Promise<Omit<Finding, 'check'>[]> {
  const existing = await firstExisting(folder);
  await access(existing, constants.W_OK).catch(() => {
    throw new Error(`${existing} is not writable by this user`);
  });
  const { bavail, bsize } = await statfs(existing);
  const free = bavail * bsize;
  const detail = `${(free / 1_024 ** 3).toFixed(1)} GiB are free at ${existing}`;
  if (free >= LOW_DISK_BYTES) return [ok(detail)];
  return [problem(free < FULL_DISK_BYTES ? 'failed' : 'warning', detail, 'free some space, or set DATA_DIR to a folder on a larger disk')];
}

async function firstExisting(folder: string): Promise<string> {
  const isThere = await access(folder).then(
    () => true,
    () => false,
  );
  return isThere || dirname(folder) === folder ? folder : firstExisting(dirname(folder));
}
