import type { Deployment } from 'kubernetes-types/apps/v1.js';
import type { Container, Service, Volume } from 'kubernetes-types/core/v1.js';
import type { Ingress } from 'kubernetes-types/networking/v1.js';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.js';
import { documentFolders } from '../../../shared/config/document-kinds.ts';
import { bytesOf } from '../compose-file.ts';
import { doors, environmentOf, serviceOf, stopSeconds } from '../deployment.ts';
import { type ServiceName, settingsReaders } from '../service-settings.ts';
import { containerEnvironment } from './container-environment.ts';
import { IMAGE, labelsOf, metadataOf, NAMESPACE } from './names.ts';
import { restrictedContainer, restrictedPod } from './security.ts';

/** Two, so that one is left when another is replaced or its node is lost; three hosts share the partitions of a lost one. */
const replicas: Record<ServiceName, number> = { 'router-gateway': 2, 'agent-gateway': 2, 'actor-host': 3, 'router-worker': 2, 'effect-worker': 2 };

/** Until no proxy sends new connections any more: endpoints are removed at the same time as the stop begins, and proxies learn it later. */
const PRE_STOP_SECONDS = 5;
/** Beyond the drain: the contract asks for ten for the draining of connections, and closing takes ten. */
const GRACE_MARGIN_SECONDS = 20;

/** Folders in the container, and the settings that name what is in them. */
const files = { router: '/config/router', agent: '/config/agent', documents: '/config/documents' } as const;

export function deploymentOf(service: ServiceName): Deployment {
  const mounts = mountsOf(service);
  const drainSeconds = settingsReaders[service](environmentOf(service)).drainTimeoutMs / 1_000;
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: metadataOf(service),
    spec: {
      // The autoscaler has the number of the others.
      ...(isScaled(service) ? {} : { replicas: replicas[service] }),
      revisionHistoryLimit: 3,
      selector: { matchLabels: labelsOf(service) },
      // One process after the other.
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      template: {
        metadata: { labels: labelsOf(service) },
        spec: {
          ...restrictedPod,
          terminationGracePeriodSeconds: PRE_STOP_SECONDS + Math.max(drainSeconds + GRACE_MARGIN_SECONDS, stopSeconds(service)),
          affinity: {
            podAntiAffinity: {
              preferredDuringSchedulingIgnoredDuringExecution: [
                { weight: 100, podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: labelsOf(service) } } },
              ],
            },
          },
          containers: [containerOf(service, mounts)],
          volumes: [...mounts.map(({ volume }) => volume), { name: 'tmp', emptyDir: {} }],
        },
      },
    },
  };
}

/** Workers, whose queues show what they lack. */
export function isScaled(service: ServiceName): service is 'router-worker' | 'effect-worker' {
  return service === 'router-worker' || service === 'effect-worker';
}

export function leastReplicas(service: ServiceName): number {
  return replicas[service];
}

function containerOf(service: ServiceName, mounts: readonly Mount[]): Container {
  const door = doors.find(({ gateway }) => gateway === service);
  const management = settingsReaders[service](environmentOf(service)).management.port;
  const { limits, reservations } = memoryOf(service);
  return {
    name: service,
    image: IMAGE,
    args: serviceOf(service).command,
    env: containerEnvironment(service, Object.fromEntries(mounts.flatMap(({ settings }) => Object.entries(settings)))),
    ports: [...(door === undefined ? [] : [{ name: 'http', containerPort: door.port }]), { name: 'management', containerPort: management }],
    // A slow start is alive: it goes on when its stores are back. A process that can't reach them is not ready, and is not restarted for it.
    startupProbe: { httpGet: { path: '/live', port: 'management' }, periodSeconds: 2, timeoutSeconds: 5, failureThreshold: 60 },
    livenessProbe: { httpGet: { path: '/live', port: 'management' }, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 },
    readinessProbe: { httpGet: { path: '/ready', port: 'management' }, periodSeconds: 2, timeoutSeconds: 5, failureThreshold: 2 },
    ...(door === undefined ? {} : { lifecycle: { preStop: { exec: { command: ['sleep', String(PRE_STOP_SECONDS)] } } } }),
    resources: { requests: { cpu: '250m', memory: reservations }, limits: { memory: limits } },
    ...restrictedContainer,
    volumeMounts: [...mounts.map(({ volume: { name }, path }) => ({ name, mountPath: path, readOnly: true })), { name: 'tmp', mountPath: '/tmp' }],
  };
}

/** Those of the compose file. */
function memoryOf(service: ServiceName): { limits: string; reservations: string } {
  const { limits, reservations } = serviceOf(service).deploy.resources as { limits: { memory: string }; reservations?: { memory: string } };
  const quantity = (text: string) => `${bytesOf(text) / 1_048_576}Mi`;
  return { limits: quantity(limits.memory), reservations: quantity(reservations?.memory ?? limits.memory) };
}

interface Mount {
  volume: Volume;
  path: string;
  settings: Record<string, string>;
}

/** A ConfigMap has no folders, so there is one for each kind of documents; those that an agent lacks may be missing. */
function mountsOf(service: ServiceName): Mount[] {
  const { ROUTER_CONFIG: router, MANIFEST: manifest } = environmentOf(service);
  const routerMount = { volume: configMap('router'), path: files.router, settings: { ROUTER_CONFIG: `${files.router}/router.yaml` } };
  const agentMount = { volume: configMap('agent'), path: files.agent, settings: { MANIFEST: `${files.agent}/manifest.yaml` } };
  const documentMounts = Object.values(documentFolders).map((folder) => ({
    volume: configMap(`agent-${folder}`, true),
    path: `${files.documents}/${folder}`,
    settings: { DOCUMENTS: files.documents },
  }));
  // The router worker reads the manifest for the addresses in it, and no documents.
  const agentMounts = service === 'router-worker' ? [agentMount] : [agentMount, ...documentMounts];
  return [...(router === undefined ? [] : [routerMount]), ...(manifest === undefined ? [] : agentMounts)];
}

function configMap(name: string, optional = false): Volume {
  return { name, configMap: { name, ...(optional ? { optional } : {}) } };
}

/** One process at a time is taken away on purpose, as when nodes are replaced. */
export function disruptionBudgetOf(name: string): PodDisruptionBudget {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: metadataOf(name),
    spec: { maxUnavailable: 1, selector: { matchLabels: labelsOf(name) } },
  };
}

export function serviceOfGateway({ gateway, port }: (typeof doors)[number]): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: metadataOf(gateway),
    spec: { selector: labelsOf(gateway), ports: [{ name: 'http', port, targetPort: 'http' }] },
  };
}

/** For an agent that is registered at its platform, which then calls it. */
export function agentIngress(): Ingress {
  const [{ gateway }] = doors.filter(({ gateway: name }) => name === 'agent-gateway') as [(typeof doors)[number]];
  const host = 'agent.example.com';
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: metadataOf(gateway),
    spec: {
      tls: [{ hosts: [host], secretName: `${NAMESPACE}-agent-tls` }],
      rules: [{ host, http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: gateway, port: { name: 'http' } } } }] } }],
    },
  };
}
