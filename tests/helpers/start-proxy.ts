import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { testProgram } from '../../scripts/servers/test-programs.mjs';
import { freePort } from '../../scripts/servers/test-tcp.mjs';
import type { Certified } from '../../shared/http/test-support/self-made-certificate.ts';
import { root } from './deployment.ts';
import { eventually } from './eventually.ts';
import { freeFolder } from './free-folder.ts';
import { runProgram } from './run-program.ts';
import type { Cluster } from './start-cluster.ts';

export interface TlsProxy {
  /** Over TLS, by the name `localhost`. */
  routerUrl: string;
  agentUrl: string;
  stop(): Promise<void>;
}

const CERTIFICATES = '/usr/local/etc/haproxy/tls/';
const doors = [3000, 8080, 8404, 3443, 8443];

/** HAProxy with the two configurations of `deploy/`, but for addresses: on free ports of loopback, in front of the running gateways. */
export async function startProxy(cluster: Cluster, { certificate, key }: Certified): Promise<TlsProxy> {
  const folder = await freeFolder('proxy');
  await mkdir(join(folder, 'tls'));
  await writeFile(join(folder, 'tls/localhost.pem'), `${certificate}${key}`, { mode: 0o600 });
  const ports = new Map(await Promise.all(doors.map(async (door) => [door, await freePort()] as const)));
  const paths: string[] = [];
  for (const name of ['haproxy.cfg', 'tls.cfg']) {
    const text = await readFile(join(root, 'deploy/haproxy', name), 'utf8');
    const here = text
      // As many files as the machine allows.
      .replace('maxconn 20000', 'maxconn 1000')
      .replaceAll(CERTIFICATES, `${join(folder, 'tls')}/`)
      .replace(/^( *bind )\S*:(\d+)/gm, (_, bind: string, port: string) => `${bind}127.0.0.1:${ports.get(Number(port))}`)
      .replace(/^ *server-template (router|agent)-gateway-.*$/gm, (_, which: string) => serversOf(cluster, `${which}-gateway` as Gateway).join('\n'));
    paths.push(join(folder, name));
    await writeFile(join(folder, name), here);
  }
  const program = runProgram([await testProgram('haproxy'), '-db', ...paths.flatMap((path) => ['-f', path])]);
  const live = `http://127.0.0.1:${ports.get(8404)}/live`;
  await eventually(async () => program.hasExited() || (await fetch(live).catch(() => null))?.ok === true, { timeoutMs: 60_000 });
  if (program.hasExited()) throw new Error(`HAProxy has ended:\n${program.output()}`);
  return {
    routerUrl: `https://localhost:${ports.get(3443)}`,
    agentUrl: `https://localhost:${ports.get(8443)}`,
    stop: async () => {
      program.signal('SIGTERM');
      await program.exited;
    },
  };
}

type Gateway = 'router-gateway' | 'agent-gateway';

/** In place of those that Docker's name server gives. */
function serversOf(cluster: Cluster, gateway: Gateway): string[] {
  return cluster.running(gateway).map(({ index, url, managementUrl }) => {
    const check = `check port ${new URL(managementUrl).port} inter 500ms fall 2 rise 1`;
    return `    server ${gateway}-${index} ${new URL(url ?? '').host} ${check}`;
  });
}
