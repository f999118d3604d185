import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { streams } from '../bus/nats/streams.ts';
import { workQueues } from '../bus/work-queues.ts';
import { doors, dotEnv, ourServices, packageFile, serviceOf, stopSeconds } from './helpers/deployment.ts';
import { kubernetesFiles } from './helpers/kubernetes/manifests.ts';
import { folder, manifests, ofKind, podOf, pods, secretsFrom, settingsOf } from './helpers/kubernetes/read-folder.ts';
import { mayReach } from './helpers/kubernetes/read-policies.ts';
import { settingsReaders } from './helpers/service-settings.ts';

describe('the manifests', () => {
  it.each(Object.entries(kubernetesFiles()))('have %s as the code and the compose file give it', async (path, content) => {
    await expect(content).toMatchFileSnapshot(join(folder, path));
  });

  it('are all of the folder, each object once, and in the one namespace', () => {
    const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.yaml'));
    const identities = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);

    expect(paths.sort()).toEqual(Object.keys(kubernetesFiles()).sort());
    expect(new Set(identities).size).toBe(identities.length);
    expect(ofKind('Namespace').map(({ metadata }) => metadata.name)).toEqual(['switchyard']);
    for (const { kind, metadata } of manifests.filter((one) => one.kind !== 'Namespace'))
      expect(metadata.namespace, `${kind} ${metadata.name}`).toBe('switchyard');
  });

  it('have a deployment for each service, of the image and the command of the compose file', () => {
    expect(ofKind('Deployment').map(({ metadata }) => metadata.name)).toEqual([...ourServices].sort());
    for (const name of [...ourServices, 'streams']) expect(podOf(name).container.image).toBe(`switchyard:${packageFile.version}`);
    for (const name of ourServices) expect(podOf(name).container.args).toEqual(serviceOf(name).command);
    expect(podOf('nats').container.image).toBe(serviceOf('nats').image);
  });

  it('select the pods that they make', () => {
    const selectors = z.looseObject({ selector: z.looseObject({ matchLabels: z.record(z.string(), z.string()) }) });
    for (const { owner, labels } of [...pods.values()].filter((one) => one.owner.kind !== 'Job')) {
      expect(selectors.parse(owner.spec).selector.matchLabels).toEqual(labels);
    }
    for (const budget of ofKind('PodDisruptionBudget')) {
      expect([...pods.values()].map(({ labels }) => labels)).toContainEqual(selectors.parse(budget.spec).selector.matchLabels);
      expect(budget.spec).toMatchObject({ maxUnavailable: 1 });
    }
    expect(ofKind('PodDisruptionBudget').map(({ metadata }) => metadata.name)).toEqual(expect.arrayContaining([...ourServices, 'nats']));
  });
});

describe('the pods of the services', () => {
  it('end later than the process does: after the drain there are 20 s, and the time in which proxies learn of the end', () => {
    for (const name of ourServices) {
      const { pod, container } = podOf(name);
      const [, sleepSeconds = '0'] = container.lifecycle?.preStop.exec.command ?? [];
      const { drainTimeoutMs } = settingsReaders[name](settingsOf(name, secretsFrom(dotEnv)));

      expect(pod.terminationGracePeriodSeconds, name).toBeGreaterThanOrEqual(drainTimeoutMs / 1_000 + 20 + Number(sleepSeconds));
      expect(pod.terminationGracePeriodSeconds, name).toBeGreaterThan(Number(sleepSeconds) + stopSeconds(name));
    }
    // Those that a proxy sends requests to.
    for (const { gateway } of doors) expect(podOf(gateway).container.lifecycle?.preStop.exec.command).toEqual(['sleep', expect.stringMatching(/^[5-9]$/)]);
  });

  it('are probed at the management port: for life at /live, for requests at /ready', () => {
    for (const name of ourServices) {
      const { container } = podOf(name);
      const { management } = settingsReaders[name](settingsOf(name, secretsFrom(dotEnv)));
      const { startupProbe, livenessProbe, readinessProbe } = container;

      expect(container.ports).toContainEqual({ name: 'management', containerPort: management.port });
      expect(management.host).toBe('0.0.0.0');
      expect([startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet)).toEqual([
        { path: '/live', port: 'management' },
        { path: '/live', port: 'management' },
        { path: '/ready', port: 'management' },
      ]);
    }
  });

  it('avoid the node of their like; brokers never share one', () => {
    for (const name of ourServices) expect(podOf(name).pod.affinity?.podAntiAffinity).toHaveProperty('preferredDuringSchedulingIgnoredDuringExecution');
    expect(podOf('nats').pod.affinity?.podAntiAffinity).toHaveProperty('requiredDuringSchedulingIgnoredDuringExecution');
  });

  it('are replaced one after the other, and none before its successor is ready', () => {
    for (const { metadata, spec } of ofKind('Deployment')) {
      expect(spec?.['strategy'], metadata.name).toEqual({ type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } });
    }
  });
});

describe('the brokers', () => {
  it('are three, whose names are in the addresses of the services, with space for their streams', () => {
    const [set] = ofKind('StatefulSet');
    const text = ofKind('ConfigMap')[0]?.data?.['nats-server.conf'] ?? '';
    const diskBytes = Number(/max_file_store: (\d+)/.exec(text)?.[1]);
    const memoryBytes = Number(/max_memory_store: (\d+)/.exec(text)?.[1]);
    const claims = z.array(z.looseObject({ spec: z.looseObject({ resources: z.object({ requests: z.object({ storage: z.string() }) }) }) })).length(1);
    const [claim] = claims.parse(set?.spec?.['volumeClaimTemplates']);

    expect(set?.metadata.name).toBe('nats');
    expect(set?.spec).toMatchObject({ replicas: 3, serviceName: 'nats' });
    expect(text).toContain('sync_interval: always');
    expect(gibibytes(claim?.spec.resources.requests.storage) * 2 ** 30).toBeGreaterThan(diskBytes * 1.1);
    expect(gibibytes(podOf('nats').container.resources.limits.memory) * 2 ** 30).toBeGreaterThan(memoryBytes * 1.5);
  });

  it('hand their streams over before they end', () => {
    const text = ofKind('ConfigMap')[0]?.data?.['cluster.conf'] ?? '';
    const [grace, duration] = ['grace_period', 'duration'].map((name) => Number(new RegExp(`lame_duck_${name}: "(\\d+)s"`).exec(text)?.[1])) as [
      number,
      number,
    ];
    const { pod, container } = podOf('nats');

    expect(container.lifecycle?.preStop.exec.command).toEqual(['nats-server', '--signal', `ldm=${/pid_file: "(.+)"/.exec(text)?.[1]}`]);
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(grace + duration + 20);
    expect(grace).toBeLessThan(duration);
  });
});

function gibibytes(quantity = ''): number {
  const [, number = ''] = /^(\d+)Gi$/.exec(quantity) ?? [];
  return Number(number || Number.NaN);
}

describe('the autoscaler', () => {
  const trigger = z.looseObject({ type: z.string(), metadata: z.record(z.string(), z.string()) });
  const scaledObject = z.looseObject({ scaleTargetRef: z.object({ name: z.string() }), minReplicaCount: z.number(), triggers: z.array(trigger) });
  const scaled = ofKind('ScaledObject').map(({ spec }) => scaledObject.parse(spec));

  it('reads the lag of every consumer of work, by the names that the code gives to streams and consumers', () => {
    const queues = scaled.flatMap(({ scaleTargetRef, triggers }) =>
      triggers.filter(({ type }) => type === 'nats-jetstream').map(({ metadata }) => [scaleTargetRef.name, metadata['stream'], metadata['consumer']]),
    );

    expect(queues.sort()).toEqual(
      Object.values(workQueues)
        .map(({ read: [reader], consumer }) => [reader, streams.work.name, consumer])
        .sort(),
    );
  });

  it('has the number of replicas to itself, and keeps two', () => {
    const fixed = ofKind('Deployment').filter(({ spec }) => spec !== undefined && 'replicas' in spec);

    expect([...fixed.map(({ metadata }) => metadata.name), ...scaled.map(({ scaleTargetRef }) => scaleTargetRef.name)].sort()).toEqual([...ourServices].sort());
    for (const { minReplicaCount } of scaled) expect(minReplicaCount).toBeGreaterThanOrEqual(2);
    for (const { spec } of fixed) expect(spec?.['replicas']).toBeGreaterThanOrEqual(2);
  });

  it('asks a port of the brokers that it may reach', () => {
    const { ports } = z
      .object({ ports: z.array(z.object({ name: z.string(), port: z.number() })) })
      .parse(ofKind('Service').find(({ metadata }) => metadata.name === 'nats')?.spec);
    const monitor = ports.find(({ name }) => name === 'monitor')?.port;

    for (const { metadata } of scaled.flatMap(({ triggers }) => triggers).filter(({ type }) => type === 'nats-jetstream')) {
      expect(metadata['natsServerMonitoringEndpoint']).toBe(`nats.switchyard:${monitor}`);
    }
    expect(ofKind('ConfigMap')[0]?.data?.['nats-server.conf']).toContain(`http: "0.0.0.0:${monitor}"`);
    expect(mayReach('namespace keda', 'nats')).toEqual([monitor]);
  });
});

describe('the way in from outside', () => {
  it('is one Ingress, for an agent with `endpoint: true`, in a folder that is not applied with the others', () => {
    const [ingress, ...others] = ofKind('Ingress');
    const rule = z.looseObject({
      host: z.string(),
      http: z.object({
        paths: z.tuple([z.looseObject({ backend: z.object({ service: z.object({ name: z.string(), port: z.object({ name: z.string() }) }) }) })]),
      }),
    });
    const spec = z
      .looseObject({ tls: z.tuple([z.object({ hosts: z.array(z.string()), secretName: z.string() })]), rules: z.tuple([rule]) })
      .parse(ingress?.spec);
    const { service } = spec.rules[0].http.paths[0].backend;
    const target = ofKind('Service').find(({ metadata }) => metadata.name === service.name);

    expect(others).toEqual([]);
    expect(ingress?.path).toBe('endpoint/ingress.yaml');
    expect(service.name).toBe('agent-gateway');
    expect(target?.spec?.['ports']).toContainEqual(expect.objectContaining({ name: service.port.name, port: 8080 }));
    expect(spec.tls[0].hosts).toEqual([spec.rules[0].host]);
    // The other services are reached in the cluster.
    expect(ofKind('Service').filter(({ spec: other }) => other !== undefined && 'type' in other)).toEqual([]);
  });
});
