import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { busUsers } from '../bus/nats/permissions.ts';
import { clusterPings, pingSettings, pings } from '../bus/nats/pings.ts';
import { natsServerConfig, passwordVariableOf } from '../bus/nats/server-config.ts';
import { natsClusterPings, natsEnvironment } from '../scripts/servers/stores.mjs';
import { providerBlock } from '../services/router-worker/providers/registry.ts';
import { loadRouterConfig } from '../shared/config/load-router-config.ts';
import { bytesOf, secondsOf, variablesIn } from './helpers/compose-file.ts';
import { compose, doors, dotEnv, environmentOf, exampleFiles, mountsOf, ourServices, root, serviceOf, stopSeconds } from './helpers/deployment.ts';
import { directiveIn, readSections } from './helpers/plain-config.ts';
import { settingsReaders } from './helpers/service-settings.ts';

const haproxy = readSections(join(root, 'deploy/haproxy/haproxy.cfg'));

describe('the broker', () => {
  const { source = '', target = '' } = mountsOf('nats').find(({ isBind }) => isBind) ?? {};
  const text = readFileSync(join(root, source), 'utf8');

  it('DESIGN 11: the broker of the compose file has the users, permissions and room that the code gives it, and keeps what it confirms', async () => {
    const made = natsServerConfig({ listen: '0.0.0.0:4222', monitor: '127.0.0.1:8222', storeDir: '/data', syncAlways: true });

    expect(text).toContain('sync_interval: always');
    await expect(made).toMatchFileSnapshot(join(root, source));
  });

  it('is started with it, probed at its own port, and stores its streams in a volume', () => {
    const { command, healthcheck, deploy } = serviceOf('nats');
    const memoryStore = Number(/max_memory_store: (\d+)/.exec(text)?.[1]);

    expect(command).toEqual(['nats-server', '--config', target]);
    expect(healthcheck?.test.at(-1)).toBe('http://127.0.0.1:8222/healthz');
    expect(mountsOf('nats')).toContainEqual({ source: 'nats-data', target: '/data', isBind: false, isReadOnly: false });
    expect(bytesOf(deploy.resources.limits.memory)).toBeGreaterThan(memoryStore * 1.5);
  });

  it('pings its clients as often as they ping it, and so do the brokers of a cluster among themselves', () => {
    const cluster = readFileSync(join(root, 'deploy/kubernetes/2-nats.yaml'), 'utf8');

    expect(text.split('\n')).toEqual(expect.arrayContaining(pingSettings(pings)));
    expect(natsClusterPings).toEqual(pingSettings(clusterPings));
    for (const line of natsClusterPings) {
      expect(cluster).toContain(line);
      expect(readFileSync(join(root, 'docs/deploy.md'), 'utf8')).toContain(`\n${line}`);
    }
  });

  it('has a password for every user', () => {
    const passwords = busUsers.map(passwordVariableOf);

    expect(busUsers).toEqual(expect.arrayContaining(ourServices));
    const given = Object.entries(serviceOf('nats').environment).filter(([name]) => !(name in natsEnvironment));

    expect(given.map(([name, value]) => [name, variablesIn(value)[0]?.name])).toEqual(passwords.map((name) => [name, name]));
    expect([...text.matchAll(/password: \$(\w+)/g)].map(([, name]) => name)).toEqual(passwords);
  });

  it('runs in the compose file as it does in the bench and in tests', () => {
    expect(serviceOf('nats').environment).toMatchObject(natsEnvironment);
  });
});

describe('the proxy', () => {
  it.each(doors)('leads port $port to every $gateway that says it is ready', ({ gateway, port, frontend }) => {
    const backend = haproxy(`backend ${gateway}`);
    const { management } = settingsReaders[gateway](environmentOf(gateway));

    expect(haproxy(`frontend ${frontend}`)).toEqual([`bind :${port}`, `default_backend ${gateway}`]);
    expect(directiveIn(backend, 'server-template')).toMatch(
      new RegExp(`^${gateway}- \\d+ ${gateway}:${port} check port ${management.port} .*resolvers docker .*init-addr none$`),
    );
    expect(backend).toEqual(expect.arrayContaining(['option httpchk', 'http-check send meth GET uri /ready', 'http-check expect status 200']));
    expect(serviceOf('proxy').networks.some((network) => serviceOf(gateway).networks.includes(network))).toBe(true);
  });

  it('tolerates the longest silence of a call, ends calls of clients that disconnect, and repeats none that may have been received', async () => {
    const defaults = haproxy('defaults');
    const { config } = await loadRouterConfig(exampleFiles.routerConfigPath, dotEnv, { secrets: 'all', provider: providerBlock });

    for (const side of ['client', 'server'])
      expect(secondsOf(directiveIn(defaults, `timeout ${side}`)) * 1_000).toBeGreaterThan(config.timeouts.total_ms + 30_000);
    expect(defaults).toEqual(expect.arrayContaining(['option abortonclose', 'option http-no-delay', 'retry-on conn-failure']));
  });

  it('has time to finish what the gateways finish, and files for all its connections', () => {
    const { stop_grace_period: grace, stop_signal: signal, ulimits, depends_on: dependsOn } = serviceOf('proxy');
    const hardStop = secondsOf(directiveIn(haproxy('global'), 'hard-stop-after'));

    expect(signal).toBe('SIGUSR1');
    expect(hardStop).toBeGreaterThan(Math.max(...ourServices.map(stopSeconds)));
    expect(secondsOf(grace)).toBeGreaterThan(hardStop);
    expect(ulimits?.nofile.soft).toBeGreaterThan(2 * Number(directiveIn(haproxy('global'), 'maxconn')) + 100);
    // Stopped together with the gateways: before them it would wait for streams that only they end.
    expect(dependsOn).toEqual({});
  });

  it('answers its own health check', () => {
    const url = new URL(serviceOf('proxy').healthcheck?.test.at(-1) ?? '');

    expect(haproxy('frontend health')).toEqual([`bind ${url.host}`, `monitor-uri ${url.pathname}`]);
  });
});

const parts = z.record(z.string(), z.unknown());
const pipeline = z.strictObject({ receivers: z.array(z.string()), processors: z.array(z.string()), exporters: z.array(z.string()) });
const collectorConfig = z.strictObject({
  receivers: parts,
  processors: parts,
  exporters: parts,
  service: z.strictObject({ pipelines: z.strictObject({ traces: pipeline }) }),
});

const prometheusConfig = z.object({
  rule_files: z.array(z.string()),
  scrape_configs: z.tuple([z.object({ dns_sd_configs: z.tuple([z.object({ names: z.array(z.string()), port: z.number() })]) })]),
});
const provisioned = { datasources: z.object({ datasources: z.tuple([z.object({ type: z.string(), url: z.string() })]) }) };
const dashboardProvider = z.object({ providers: z.tuple([z.object({ options: z.object({ path: z.string() }) })]) });

describe('the profile monitoring', () => {
  const read = (path: string): unknown => parse(readFileSync(join(root, path), 'utf8'));

  it('scrapes the management port of each service, with the rules, over a network of all of them', () => {
    const [folder] = mountsOf('prometheus');
    const config = prometheusConfig.parse(read(`${folder?.source}/prometheus.yaml`));
    const [{ names, port }] = config.scrape_configs[0].dns_sd_configs;

    expect(serviceOf('prometheus').command).toContain(`--config.file=${folder?.target}/prometheus.yaml`);
    for (const file of config.rule_files) expect(existsSync(join(root, folder?.source ?? '', file)), file).toBe(true);
    expect([...names].sort()).toEqual([...ourServices, 'router', 'agent'].sort());
    for (const name of names) expect(serviceOf(name).environment['MANAGEMENT_PORT']).toBe(String(port));
    for (const name of [...names, 'otel-collector', 'grafana'])
      expect(serviceOf(name).networks).toEqual(expect.arrayContaining(serviceOf('prometheus').networks));
  });

  it('shows the dashboards of deploy/ with the series of that Prometheus', () => {
    const dashboards = mountsOf('grafana').find(({ source }) => /deploy\/grafana$/.test(source));
    const [source] = provisioned.datasources.parse(read('deploy/grafana/provisioning/datasources/prometheus.yaml')).datasources;
    const [provider] = dashboardProvider.parse(read('deploy/grafana/provisioning/dashboards/switchyard.yaml')).providers;

    expect(source).toEqual({ type: 'prometheus', url: 'http://prometheus:9090' });
    expect(dashboards?.target).toBe(provider.options.path);
    expect(mountsOf('grafana').map(({ target }) => target)).toContain('/etc/grafana/provisioning');
  });
});

describe('the collector', () => {
  it('has a pipeline that is complete and leads to Jaeger', () => {
    const [mount] = mountsOf('otel-collector');
    const collector = collectorConfig.parse(parse(readFileSync(join(root, mount?.source ?? ''), 'utf8')));
    const { receivers, processors, exporters } = collector.service.pipelines.traces;

    expect(serviceOf('otel-collector').command).toEqual([`--config=${mount?.target}`]);
    expect(receivers).toEqual(Object.keys(collector.receivers));
    expect(processors).toEqual(Object.keys(collector.processors));
    expect(exporters).toEqual(Object.keys(collector.exporters));
    expect(collector.exporters).toMatchObject({ 'otlp/jaeger': { endpoint: 'jaeger:4317' } });
    expect(serviceOf('jaeger').networks).toContain('inside');
  });

  it('outside is reached from the network of every service, by one that passes traces on and alone has the credential', () => {
    const [mount] = mountsOf('otel-forwarder');
    const forwarder = collectorConfig.parse(parse(readFileSync(join(root, mount?.source ?? ''), 'utf8')));
    const isInternal = (network: string) => compose.networks[network]?.internal === true;
    const { networks } = serviceOf('otel-forwarder');
    const named = [...JSON.stringify(forwarder.exporters).matchAll(/\$\{env:(\w+)\}/g)].map(([, name]) => name);

    expect(serviceOf('otel-forwarder').command).toEqual([`--config=${mount?.target}`]);
    expect(networks.some((network) => !isInternal(network))).toBe(true);
    for (const name of ourServices)
      expect(
        networks.filter((network) => isInternal(network) && serviceOf(name).networks.includes(network)),
        name,
      ).not.toEqual([]);
    expect(forwarder.service.pipelines.traces.exporters).toEqual(Object.keys(forwarder.exporters));
    expect(forwarder.receivers).toEqual(collectorConfig.parse(parse(readFileSync(join(root, 'deploy/otel/collector.yaml'), 'utf8'))).receivers);
    expect(named.sort()).toEqual(Object.keys(serviceOf('otel-forwarder').environment).sort());
  });
});
