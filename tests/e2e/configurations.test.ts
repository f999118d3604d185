import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { busUsers } from '../../bus/nats/permissions.ts';
import { passwordVariableOf } from '../../bus/nats/server-config.ts';
import { testProgram } from '../../scripts/servers/test-programs.mjs';
import { selfMadeCertificate } from '../../shared/http/test-support/self-made-certificate.ts';
import { root } from '../helpers/deployment.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { ofKind } from '../helpers/kubernetes/read-folder.ts';

const run = promisify(execFile);

/** Output of a program that has read a configuration. @throws with the output, when it refuses it */
async function outputOf(program: string, args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const { stdout, stderr } = await run(program, [...args], { env: { PATH: process.env['PATH'], ...env } });
  return stdout + stderr;
}

describe('nats-server reads its configuration:', () => {
  const env = { POD_NAME: 'nats-0', ...Object.fromEntries(busUsers.map((user) => [passwordVariableOf(user), 'secret'])) };
  // Servers before 2.10 do not know it.
  const forOldServers = (text: string) => text.replace(/^ *sync_interval: always\n/m, '');

  it('that of the compose file', async () => {
    const path = join(await freeFolder('nats'), 'nats-server.conf');
    await writeFile(path, forOldServers(await readFile(join(root, 'deploy/nats/nats-server.conf'), 'utf8')));

    expect(await outputOf(await testProgram('nats'), ['-t', '-c', path], env)).toContain('is valid');
    await expect(outputOf(await testProgram('nats'), ['-t', '-c', path])).rejects.toThrow('NATS_PASSWORD');
  });

  it('that of Kubernetes, a cluster that includes it', async () => {
    const folder = await freeFolder('nats');
    const files = Object.entries(ofKind('ConfigMap')[0]?.data ?? {});
    for (const [name, text] of files) await writeFile(join(folder, name), forOldServers(text));

    expect(files).toHaveLength(2);
    expect(await outputOf(await testProgram('nats'), ['-t', '-c', join(folder, 'cluster.conf')], env)).toContain('is valid');
  });
});

describe('HAProxy reads its configuration:', () => {
  it('that of the compose file, and beside it the one with TLS', async () => {
    const folder = await freeFolder('haproxy');
    const { certificate, key } = selfMadeCertificate(['localhost']);
    await mkdir(join(folder, 'tls'));
    await writeFile(join(folder, 'tls/localhost.pem'), `${certificate}${key}`);
    const withTls = (await readFile(join(root, 'deploy/haproxy/tls.cfg'), 'utf8')).replaceAll('/usr/local/etc/haproxy/tls/', `${folder}/tls/`);
    await writeFile(join(folder, 'tls.cfg'), withTls);
    const plain = join(root, 'deploy/haproxy/haproxy.cfg');

    for (const args of [
      ['-f', plain],
      ['-f', plain, '-f', join(folder, 'tls.cfg')],
    ]) {
      const output = await outputOf(await testProgram('haproxy'), ['-c', ...args]);
      expect(output).toContain('Configuration file is valid');
      expect(output).not.toContain('WARNING');
    }
  });
});
