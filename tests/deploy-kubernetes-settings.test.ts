import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { busUsers } from '../bus/nats/permissions.ts';
import { passwordVariableOf } from '../bus/nats/server-config.ts';
import { documentFolders } from '../shared/config/document-kinds.ts';
import { folderSource } from '../shared/config/folder-source.ts';
import { loadBundle } from '../shared/config/load-bundle.ts';
import { dotEnv, exampleFiles, ourServices, root, serviceOf } from './helpers/deployment.ts';
import { folder, ofKind, podOf, pods, secretsFrom, settingsOf, storeUrls } from './helpers/kubernetes/read-folder.ts';
import { credentialVariables, settingsReaders } from './helpers/service-settings.ts';

const run = promisify(execFile);

const made = mkdtempSync(join(tmpdir(), 'switchyard-kubernetes-'));
afterAll(() => rmSync(made, { recursive: true }));

describe('the settings', () => {
  it.each(ourServices)('of %s are valid, with every credential that the examples name', (name) => {
    const environment = settingsOf(name, secretsFrom(dotEnv));
    const { nats } = settingsReaders[name](environment);

    expect(nats).toEqual({
      replicas: 3,
      servers: 'nats://nats-0.nats:4222,nats://nats-1.nats:4222,nats://nats-2.nats:4222',
      user: name,
      password: dotEnv[passwordVariableOf(name)],
    });
    expect(Object.keys(environment)).toEqual(expect.arrayContaining(credentialVariables(root, name, exampleFiles)));
  });

  it('are those of the compose file, and where the files are', () => {
    for (const name of ourServices) {
      const added = podOf(name)
        .container.env.map((one) => one.name)
        .filter((variable) => !(variable in serviceOf(name).environment));

      expect(added.sort()).toEqual(name === 'router-gateway' || name === 'router-worker' ? ['NATS_REPLICAS'] : ['DOCUMENTS', 'NATS_REPLICAS']);
      expect(podOf(name).container.env.map((one) => one.name)).toEqual(expect.arrayContaining(Object.keys(serviceOf(name).environment)));
    }
  });

  it('have no secret in them: each is a reference to a Secret of that service alone, and no Secret stands in the folder', () => {
    const variables = [...pods].flatMap(([name, { container }]) => container.env.map((variable) => ({ container: name, ...variable })));
    const secrets = variables.filter(({ name }) => /PASSWORD|SECRET(?!S_DIR)|KEY|DATABASE_URL|REDIS_URL|SMTP_URL|HEADERS/.test(name));

    expect(secrets.length).toBeGreaterThan(30);
    for (const { container, value, valueFrom } of secrets)
      expect({ value, valueFrom }).toMatchObject({ value: undefined, valueFrom: { secretKeyRef: { name: container } } });
    expect(ofKind('Secret')).toEqual([]);
  });

  it('read files that are mounted, in the form in which a ConfigMap is mounted', async () => {
    const documents = exampleFiles.manifestPath.replace('manifest.yaml', 'documents');
    for (const { metadata } of ofKind('Deployment')) {
      const { container, pod } = podOf(metadata.name);
      const mounted = container.volumeMounts.map(({ mountPath }) => mountPath);
      const paths = container.env.filter(({ name }) => ['ROUTER_CONFIG', 'MANIFEST'].includes(name)).map(({ value = '' }) => value);

      for (const path of paths) expect(mounted).toContain(path.slice(0, path.lastIndexOf('/')));
      for (const { name } of container.volumeMounts) expect(pod.volumes.map((volume) => volume.name)).toContain(name);
      const documentsPath = container.env.find(({ name }) => name === 'DOCUMENTS')?.value;
      if (documentsPath !== undefined)
        expect(mounted).toEqual(expect.arrayContaining(Object.values(documentFolders).map((kind) => `${documentsPath}/${kind}`)));
    }
    for (const kind of Object.values(documentFolders)) mountAsConfigMap(join(documents, kind), join(made, kind));
    const original = await loadBundle({ manifestPath: exampleFiles.manifestPath, documents: folderSource(documents), environment: dotEnv });
    const mounted = await loadBundle({ manifestPath: exampleFiles.manifestPath, documents: folderSource(made), environment: dotEnv });
    expect(mounted.body.documents.routines.length).toBeGreaterThan(1);
    expect(mounted).toEqual(original);
  });
});

/** As the kubelet does: files are links into a folder with a time in its name, by way of a link that it replaces at an update. */
function mountAsConfigMap(source: string, target: string): void {
  // The agent has no documents of some kinds, whose ConfigMaps may be missing: their folders are empty then.
  const files = existsSync(source) ? readdirSync(source, { withFileTypes: true }).filter((entry) => entry.isFile()) : [];
  mkdirSync(join(target, '..2026_01_31'), { recursive: true });
  symlinkSync('..2026_01_31', join(target, '..data'));
  for (const { name } of files) {
    writeFileSync(join(target, '..2026_01_31', name), readFileSync(join(source, name)));
    symlinkSync(join('..data', name), join(target, name));
  }
}

describe('the Secrets that secrets.sh prints', () => {
  const script = join(folder, 'secrets.sh');
  const envFile = join(made, '.env');
  const write = (values: Readonly<Record<string, string | undefined>>) =>
    writeFileSync(
      envFile,
      Object.entries(values)
        .flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}\n`]))
        .join(''),
    );
  const secret = z.object({
    kind: z.literal('Secret'),
    metadata: z.object({ name: z.string(), namespace: z.literal('switchyard') }),
    data: z.record(z.string(), z.string()),
  });

  it('have what each service and the broker refer to, and nothing else', async () => {
    write({ ...dotEnv, OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20s3cret' });
    const { stdout } = await run('sh', [script, envFile], { env: { PATH: process.env['PATH'], ...storeUrls } });
    const printed = parseAllDocuments(stdout).map((document) => secret.parse(document.toJS()));
    const decoded = new Map(
      printed.map(({ metadata, data }) => [
        metadata.name,
        Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64').toString('utf8')])),
      ]),
    );

    expect(decoded).toEqual(secretsFrom({ ...dotEnv, OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20s3cret' }));
    for (const name of ourServices) expect(() => settingsReaders[name](settingsOf(name, decoded))).not.toThrow();
    expect(Object.keys(decoded.get('nats') ?? {})).toEqual(busUsers.map(passwordVariableOf));
  });

  it('are not printed in part: a missing value is named', async () => {
    write({ ...dotEnv, ...storeUrls, NATS_PASSWORD_EFFECT_WORKER: undefined });
    await expect(run('sh', [script, envFile])).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: `NATS_PASSWORD_EFFECT_WORKER is missing in ${envFile} and in the environment\n`,
    });
  });
});
