import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseEnv, promisify } from 'node:util';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { passwordVariableOf } from '../bus/nats/server-config.ts';
import { heapArgumentsOf } from '../scripts/servers/start-cluster.mjs';
import { postgresSettings } from '../scripts/servers/stores.mjs';
import { parseConfig as agentConfigOf } from '../services/agent/config.ts';
import { parseConfig as routerConfigOf } from '../services/router/config.ts';
import { providerBlock } from '../services/router-worker/providers/registry.ts';
import { folderSource } from '../shared/config/folder-source.ts';
import { loadBundle } from '../shared/config/load-bundle.ts';
import { loadRouterConfig } from '../shared/config/load-router-config.ts';
import { settingsOf } from '../shared/config/setting-table.ts';
import { openManagementListener } from '../shared/lifecycle/management-listener.ts';
import { Readiness } from '../shared/lifecycle/readiness.ts';
import { interpolate, secondsOf, variablesIn } from './helpers/compose-file.ts';
import {
  compose,
  doors,
  dotEnv,
  envExample,
  environmentOf,
  exampleFiles,
  mountsOf,
  ourServices,
  packageFile,
  root,
  serviceOf,
  servicesThat,
  stopSeconds,
} from './helpers/deployment.ts';
import { credentialVariables, deployables, readsVariable, settingsReaders } from './helpers/service-settings.ts';

/** Settings that the compose file leaves to the code, with the reason. */
const withoutUse: Record<string, string> = {
  NATS_REPLICAS: 'the compose file has one broker',
  HOST: 'a container listens on all of its addresses',
  MANAGEMENT_HOST: 'likewise',
  PORT: 'the proxy has the default',
  LOG_FORMAT: 'JSON without a terminal',
  SWITCHYARD_READY_FILE: 'for programs that start processes',
  DOCUMENTS: 'the folder beside the manifest',
  EFFECT_KINDS: 'all kinds; for workers of one kind add a service',
};

/** As the test cluster starts it. */
function commandOf(service: string): string[] {
  return [...heapArgumentsOf(service), `dist/services/${service}/main.js`];
}

describe('the services', () => {
  it('are all services of the code, each started by its own main', () => {
    const commands = Object.fromEntries(
      servicesThat(({ build, profiles }) => build !== undefined && profiles.length === 0).map((name) => [name, serviceOf(name).command]),
    );

    expect(deployables(root).length).toBeGreaterThan(4);
    expect(commands).toEqual(Object.fromEntries(deployables(root).map((name) => [name, commandOf(name)])));
    expect([...ourServices].sort()).toEqual(deployables(root));
  });

  it.each(ourServices)('give %s a valid configuration, and no variable that it does not use', (name) => {
    const environment = environmentOf(name);
    const credentials = credentialVariables(root, name, exampleFiles);
    const unused = Object.keys(environment).filter((variable) => !credentials.includes(variable) && !readsVariable(name, environment, variable));

    expect(() => settingsReaders[name](environment)).not.toThrow();
    expect(Object.keys(environment)).toEqual(expect.arrayContaining(credentials));
    expect(unused).toEqual([]);
  });

  it.each(ourServices)('can be given every setting of %s from outside, but for those that a container has no use for', (name) => {
    const missing = Object.keys(settingsOf(name)).filter((setting) => !(setting in serviceOf(name).environment));

    expect(Object.keys(settingsOf(name)).length).toBeGreaterThan(10);
    // The variables of OpenTelemetry that the compose file has not are for an override file.
    expect(missing.filter((setting) => !(setting in withoutUse || setting.startsWith('OTEL_')))).toEqual([]);
  });

  it('give a variable that several read the same value everywhere', () => {
    const values = new Map<string, Set<string>>();
    for (const name of ourServices) {
      for (const [variable, text] of Object.entries(serviceOf(name).environment)) values.set(variable, (values.get(variable) ?? new Set()).add(text));
    }
    const different = [...values].filter(([, texts]) => texts.size > 1).map(([variable]) => variable);

    expect(values.size).toBeGreaterThan(10);
    expect(different).toEqual(['NATS_PASSWORD']); // each has its own user
  });

  it('give the secret by which requests are tagged to gateways, hosts and the operator, and to no process that is a worker alone', () => {
    const having = servicesThat(({ environment }) => 'HOUSE_SECRET' in environment);
    expect(having.sort()).toEqual(['actor-host', 'agent', 'agent-gateway', 'operator', 'router', 'router-gateway']);
  });

  it('mount the files that they are configured to read, and the examples are valid', async () => {
    for (const name of ourServices) {
      const environment = environmentOf(name);
      for (const path of [environment['MANIFEST'], environment['ROUTER_CONFIG']].filter((path) => path !== undefined)) {
        const mount = mountsOf(name).find(({ target }) => path === target || path.startsWith(`${target}/`));
        const original = `${mount?.source}${path.slice(mount?.target.length)}`;

        expect([exampleFiles.routerConfigPath, exampleFiles.manifestPath]).toContain(join(root, original));
        expect(mount?.isReadOnly).toBe(true);
      }
    }
    await expect(loadRouterConfig(exampleFiles.routerConfigPath, dotEnv, { secrets: 'all', provider: providerBlock })).resolves.toBeDefined();
    const documentsPath = join(dirname(exampleFiles.manifestPath), 'documents');
    await expect(loadBundle({ manifestPath: exampleFiles.manifestPath, documents: folderSource(documentsPath), environment: dotEnv })).resolves.toBeDefined();
  });

  it('reach the stores by the names, users and passwords that these have', () => {
    const postgres = environmentOf('postgres');
    for (const name of ourServices) {
      const { nats } = settingsReaders[name](environmentOf(name));
      const { DATABASE_URL: database, REDIS_URL: redis } = environmentOf(name);

      expect(nats).toEqual({ replicas: 1, servers: 'nats://nats:4222', user: name, password: environmentOf('nats')[passwordVariableOf(name)] });
      expect(serviceOf(name).depends_on['nats']).toEqual({ condition: 'service_healthy' });
      if (database !== undefined) {
        const credentials = `${postgres['POSTGRES_USER']}:${postgres['POSTGRES_PASSWORD']}`;
        expect(database).toBe(`postgres://${credentials}@postgres:5432/${postgres['POSTGRES_DB']}`);
        // The start of a router gateway waits for no store but the broker.
        const condition = name === 'router-gateway' ? 'service_started' : 'service_healthy';
        expect(serviceOf(name).depends_on['postgres']).toEqual({ condition });
      }
      if (redis !== undefined) {
        expect(redis).toBe(`redis://:${environmentOf('redis')['REDIS_PASSWORD']}@redis:6379`);
        expect(serviceOf(name).depends_on).toHaveProperty('redis');
      }
    }
  });

  it('have a longer stop grace period than they take to drain and close', () => {
    for (const name of ourServices) {
      expect(secondsOf(serviceOf(name).stop_grace_period)).toBeGreaterThan(stopSeconds(name));
      expect(serviceOf(name)).toMatchObject({ init: true, restart: 'unless-stopped' });
    }
  });

  describe('have a health check of their readiness', () => {
    const opened: { stop(): Promise<void> }[] = [];
    afterEach(async () => {
      await Promise.all(opened.splice(0).map((listener) => listener.stop()));
    });

    it.each(ourServices)('%s, which follows the code’s own probe', async (name) => {
      const readiness = new Readiness();
      const listener = await openManagementListener({ host: '127.0.0.1', port: 0, readiness, metrics: { contentType: 'text/plain', text: async () => '' } });
      opened.push(listener);
      const [how, node, flag, script = ''] = serviceOf(name).healthcheck?.test ?? [];
      const ask = () => exitCodeOf(script.replaceAll('$$', '$'), { MANAGEMENT_PORT: new URL(listener.url).port });

      const whileBooting = await ask();
      readiness.booted([]);
      const whenReady = await ask();
      readiness.drain();

      expect([how, node, flag]).toEqual(['CMD', 'node', '--eval']);
      expect([whileBooting, whenReady, await ask()]).toEqual([1, 0, 1]);
      // The variable that the script reads is the one that the process listens by, on an address that the proxy reaches too.
      const { MANAGEMENT_PORT: port, ...others } = environmentOf(name);
      expect(settingsReaders[name](environmentOf(name)).management).toEqual({ host: '0.0.0.0', port: Number(port) });
      expect(settingsReaders[name](others).management.port).toBe(Number(port));
    });
  });
});

function exitCodeOf(script: string, env: Record<string, string>): Promise<number> {
  return new Promise((resolve) => {
    execFile(process.execPath, ['--eval', script], { env }, (error) => resolve(error === null ? 0 : Number(error.code)));
  });
}

describe('the profile co-located', () => {
  it.each([
    { name: 'router', gatewayName: 'router-gateway', otherName: 'router-worker', configOf: routerConfigOf },
    { name: 'agent', gatewayName: 'agent-gateway', otherName: 'actor-host', configOf: agentConfigOf },
  ] as const)('has $name: $gatewayName and $otherName in one process, with the settings, files and networks of both, and a user of its own', (row) => {
    const { name, gatewayName, otherName, configOf } = row;
    const [gateway, other, both] = [serviceOf(gatewayName), serviceOf(otherName), serviceOf(name)];
    const { nats, ...config } = configOf(environmentOf(name));
    const { nats: _gateway, ...ofGateway } = settingsReaders[gatewayName](environmentOf(gatewayName));
    const { nats: _other, ...ofOther } = settingsReaders[otherName](environmentOf(otherName));

    expect(both.command).toEqual(commandOf(name));
    expect(config).toEqual({ ...ofGateway, ...ofOther });
    expect(nats).toMatchObject({ user: name, password: environmentOf('nats')[passwordVariableOf(name)] });
    const { NATS_PASSWORD, ...environment } = both.environment;
    expect({ ...environment, NATS_PASSWORD: other.environment['NATS_PASSWORD'] }).toEqual({ ...gateway.environment, ...other.environment });
    expect(mountsOf(name)).toEqual(mountsOf(otherName));
    expect([...both.networks].sort()).toEqual([...new Set([...gateway.networks, ...other.networks])].sort());
    expect(both).toMatchObject({ build: gateway.build, healthcheck: gateway.healthcheck, ulimits: gateway.ulimits });
    // Not on the services of which none may run beside it.
    const besides = ['router-gateway', 'agent-gateway', 'actor-host', 'router-worker'];
    const needed = Object.entries({ ...gateway.depends_on, ...other.depends_on }).filter(([one]) => !besides.includes(one));
    expect(both.depends_on).toEqual(Object.fromEntries(needed));
    expect(secondsOf(both.stop_grace_period)).toBeGreaterThan(config.drainTimeoutMs / 1_000 + 10);
    // By which the proxy finds it.
    expect(readFileSync(join(root, 'docker-compose.yml'), 'utf8')).toContain(`edge: { aliases: [${gatewayName}] }`);
  });
});

describe('PostgreSQL', () => {
  it('has the settings of that of the tests and the bench', () => {
    const settings = Object.entries(postgresSettings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);

    expect(serviceOf('postgres').command).toEqual(['postgres', ...settings]);
  });
});

describe('the operator', () => {
  it('can be run beside the stores, as its own user, and is started by no other service', () => {
    const { entrypoint, profiles, networks, restart } = serviceOf('operator');
    const { NATS_URL, DATABASE_URL, HOUSE_SECRET } = environmentOf('actor-host');
    const { REDIS_URL } = environmentOf('router-worker');
    const NATS_PASSWORD = environmentOf('nats')[passwordVariableOf('operator')];

    expect(entrypoint).toEqual(['node', 'dist/services/operator/main.js']);
    expect(existsSync(join(root, 'services/operator/main.ts'))).toBe(true);
    expect(environmentOf('operator')).toEqual({ NATS_URL, DATABASE_URL, REDIS_URL, HOUSE_SECRET, NATS_PASSWORD });
    expect({ profiles, networks, restart }).toEqual({ profiles: ['operator'], networks: ['inside'], restart: 'no' });
  });

  it('declares the streams before any service starts, and ends', () => {
    const { entrypoint, command, restart, depends_on: dependsOn, profiles } = serviceOf('streams');
    const { NATS_URL, NATS_PASSWORD } = environmentOf('operator');

    expect({ entrypoint, command, restart, profiles }).toEqual({
      entrypoint: serviceOf('operator').entrypoint,
      command: ['streams'],
      restart: 'no',
      profiles: [],
    });
    expect(environmentOf('streams')).toEqual({ NATS_URL, NATS_PASSWORD });
    expect(dependsOn).toEqual({ nats: { condition: 'service_healthy' } });
    for (const name of ourServices) expect(serviceOf(name).depends_on['streams'], name).toEqual({ condition: 'service_completed_successfully' });
  });
});

describe('what is open to the outside', () => {
  it('is the proxy alone, with the ports that the gateways have by default', () => {
    const publishing = servicesThat(({ ports, profiles }) => ports.length > 0 && profiles.length === 0);
    const targets = serviceOf('proxy').ports.map((text) => interpolate(text, {}));

    expect(publishing).toEqual(['proxy']);
    expect(targets).toEqual(doors.map(({ port }) => `127.0.0.1:${port}:${port}`));
  });

  it('is with the profiles also a page each, for this machine', () => {
    const published = servicesThat(({ ports, profiles }) => ports.length > 0 && profiles.length > 0).flatMap((name) => serviceOf(name).ports);

    expect(published).toEqual(['127.0.0.1:16686:16686', '127.0.0.1:3001:3000']);
  });

  it('DESIGN 11: no store is open to the outside: they are on a network without a way out, which is not the proxy’s', () => {
    const isInternal = (name: string) => compose.networks[name]?.internal === true;
    const used = servicesThat(() => true).flatMap((name) => serviceOf(name).networks);

    for (const store of ['nats', 'postgres', 'redis']) expect(serviceOf(store).networks).toEqual(['inside']);
    expect([isInternal('inside'), isInternal('edge')]).toEqual([true, true]);
    expect(serviceOf('proxy').networks).not.toContain('inside');
    for (const name of ourServices) expect(serviceOf(name).networks).toContain('inside');
    expect(new Set(used)).toEqual(new Set(Object.keys(compose.networks)));
    // The services that call models, tools and callers' addresses, and no other; and with its profile the one that passes traces on.
    expect(servicesThat(({ networks, profiles }) => networks.includes('outbound') && profiles.length === 0).sort()).toEqual(['effect-worker', 'router-worker']);
    expect(servicesThat(({ networks, profiles }) => networks.includes('outbound') && profiles.length > 0)).toEqual(['router', 'otel-forwarder']);
  });
});

describe('docker-compose.yml', () => {
  it('pins every image, and its own to the version of the package', () => {
    for (const name of servicesThat(({ build }) => build === undefined)) expect(serviceOf(name).image).toMatch(/^[a-z0-9/-]+:(?!latest)[a-z]{0,2}\d[\w.-]*$/);
    for (const name of [...ourServices, 'router', 'agent', 'operator', 'streams']) expect(serviceOf(name).image).toBe(`switchyard:${packageFile.version}`);
  });

  it('holds no secret: each is required, and .env.example names every variable, with the same default if it has one', () => {
    const text = readFileSync(join(root, 'docker-compose.yml'), 'utf8');
    const used = new Map(variablesIn(text.replace(/^\s*#.*$/gm, '')).map(({ name, fallback }) => [name, fallback]));
    const secrets = servicesThat(() => true).flatMap((name) =>
      Object.entries(serviceOf(name).environment).filter(([variable]) => /PASSWORD|SECRET(?!S_DIR)|KEY/.test(variable)),
    );
    const written = secrets.filter(([, text]) => !/^\$\{\w+:\?[^}]+\}$/.test(text));

    expect(secrets.length).toBeGreaterThan(20);
    expect(written).toEqual([]);
    expect(new Map(envExample.map(({ name, value, isOptional }) => [name, isOptional ? value : null]))).toEqual(used);
    expect(envExample.filter(({ isExplained }) => !isExplained)).toEqual([]);
    expect(envExample.filter(({ isOptional, value }) => !isOptional && value !== '')).toMatchObject([{ name: 'OPENAI_API_KEY', value: 'none' }]);
  });

  it('mounts existing files, read-only, and declares the volumes that persist', () => {
    const mounts = servicesThat(() => true).flatMap(mountsOf);
    const kept = mounts.filter(({ isBind }) => !isBind).map(({ source }) => source);

    expect(mounts.filter(({ source, isBind, isReadOnly }) => isBind && !(isReadOnly && existsSync(join(root, source))))).toEqual([]);
    expect(kept.sort()).toEqual(Object.keys(compose.volumes).sort());
  });

  it('checks the health of everything that starts by default, and starts tracing and monitoring only when asked', () => {
    const byDefault = servicesThat(({ profiles }) => profiles.length === 0);

    expect(servicesThat(({ profiles }) => profiles.includes('tracing')).sort()).toEqual(['jaeger', 'otel-collector']);
    expect(servicesThat(({ profiles }) => profiles.includes('tracing-outside'))).toEqual(['otel-forwarder']);
    expect(servicesThat(({ profiles }) => profiles.includes('co-located'))).toEqual(['router', 'agent']);
    expect(servicesThat(({ profiles }) => profiles.includes('monitoring')).sort()).toEqual(['grafana', 'prometheus']);
    // A job has no health: it ends before the services start.
    for (const name of byDefault.filter((one) => one !== 'streams')) {
      expect(serviceOf(name), name).toHaveProperty('healthcheck');
      expect(byDefault).toEqual(expect.arrayContaining(Object.keys(serviceOf(name).depends_on)));
    }
  });
});

describe('deploy/processes.sh', () => {
  it('gives each service, also those with both roles, the secrets that the compose file gives it', async () => {
    const release = await builtRelease(dotEnv);
    await processes(release, 'configure', '.env');

    for (const name of [...ourServices, 'router', 'agent']) {
      const file = parseEnv(await readFile(join(release, 'deployment', `${name}.env`), 'utf8'));
      const required = Object.entries(serviceOf(name).environment).filter(([, text]) => /^\$\{\w+:\?/.test(text));
      expect(required.length).toBeGreaterThan(1);
      expect(file, name).toMatchObject(Object.fromEntries(required.map(([variable]) => [variable, environmentOf(name)[variable]])));
    }
  });

  it('takes a file of an earlier release, without the users of both roles, and the start of one names its password', async () => {
    const { NATS_PASSWORD_ROUTER: _router, NATS_PASSWORD_AGENT: _agent, ...earlier } = dotEnv;
    const release = await builtRelease(dotEnv);
    await processes(release, 'configure', '.env');
    await writeEnvironment(release, earlier);
    await processes(release, 'configure', '.env');

    const files = ['all', 'operator', ...ourServices].map((name) => `${name}.env`);
    expect((await readdir(join(release, 'deployment'))).sort()).toEqual(files.sort());
    await expect(processes(release, 'start', 'router', '9097', '3000')).rejects.toThrow('from a file with NATS_PASSWORD_ROUTER\n');
    await expect(processes(release, 'start', 'agent', '9098', '8080')).rejects.toThrow('from a file with NATS_PASSWORD_AGENT\n');
  });

  it('leaves the files as they were when a secret is missing', async () => {
    const release = await builtRelease(dotEnv);
    await processes(release, 'configure', '.env');
    const before = await filesOf(release);
    await writeEnvironment(release, { ...dotEnv, HOUSE_SECRET: 'another', NATS_PASSWORD_OPERATOR: '' });

    await expect(processes(release, 'configure', '.env')).rejects.toThrow('NATS_PASSWORD_OPERATOR is missing in .env');
    expect(await filesOf(release)).toEqual(before);
  });
});

/** A folder as `processes.sh` finds it, whose programs for both roles are empty. */
async function builtRelease(environment: Record<string, string>): Promise<string> {
  const release = await mkdtemp(join(tmpdir(), 'switchyard-processes-'));
  onTestFinished(() => rm(release, { recursive: true, force: true }));
  await symlink(join(root, 'deploy'), join(release, 'deploy'));
  for (const name of ['router', 'agent']) {
    await mkdir(join(release, 'dist/services', name), { recursive: true });
    await writeFile(join(release, 'dist/services', name, 'main.js'), '');
  }
  await writeEnvironment(release, environment);
  return release;
}

async function writeEnvironment(release: string, environment: Record<string, string>): Promise<void> {
  const lines = Object.entries(environment).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(join(release, '.env'), lines.join(''));
}

async function processes(release: string, ...args: string[]): Promise<void> {
  const given = Object.fromEntries(['NATS_URL', 'DATABASE_URL', 'REDIS_URL', 'MANIFEST', 'ROUTER_CONFIG'].map((name) => [name, name]));
  await promisify(execFile)('sh', ['deploy/processes.sh', ...args], { cwd: release, env: { PATH: process.env['PATH'], ...given } });
}

/** Name → text of what `configure` has written. */
async function filesOf(release: string): Promise<Record<string, string>> {
  const folder = join(release, 'deployment');
  const names = await readdir(folder);
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')] as const)));
}
