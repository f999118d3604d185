import type { StatefulSet } from 'kubernetes-types/apps/v1.js';
import type { Job } from 'kubernetes-types/batch/v1.js';
import type { ConfigMap, Service } from 'kubernetes-types/core/v1.js';
import { busUsers } from '../../../bus/nats/permissions.ts';
import { natsServerConfig, passwordVariableOf } from '../../../bus/nats/server-config.ts';
import { natsClusterPings, natsEnvironment } from '../../../scripts/servers/stores.mjs';
import { packageFile, serviceOf } from '../deployment.ts';
import { containerEnvironment } from './container-environment.ts';
import { BROKER, BROKERS, brokerPorts, IMAGE, labelsOf, metadataOf } from './names.ts';
import { restrictedContainer, restrictedPod } from './security.ts';

const CONFIG_FOLDER = '/etc/nats';
const DATA_FOLDER = '/data';
const PID_FILE = '/tmp/nats.pid';
/** Time to hand its streams to the others, and to have its clients leave one after the other. */
const LAME_DUCK = { graceSeconds: 5, durationSeconds: 30 };

/** One server of the cluster: its name and the addresses of all. @returns the texts of the files, which stand in one folder */
function brokerFiles(): Record<'nats-server.conf' | 'cluster.conf', string> {
  const routes = Array.from({ length: BROKERS }, (_, index) => `nats://${BROKER}-${index}.${BROKER}:${brokerPorts.cluster}`);
  const { client, cluster, monitor } = brokerPorts;
  return {
    'nats-server.conf': natsServerConfig({ listen: `0.0.0.0:${client}`, monitor: `0.0.0.0:${monitor}`, storeDir: DATA_FOLDER, syncAlways: true }),
    'cluster.conf': [
      'include "nats-server.conf"',
      'server_name: $POD_NAME',
      ...natsClusterPings,
      `pid_file: "${PID_FILE}"`,
      `lame_duck_grace_period: "${LAME_DUCK.graceSeconds}s"`,
      `lame_duck_duration: "${LAME_DUCK.durationSeconds}s"`,
      'cluster {',
      '  name: switchyard',
      `  listen: "0.0.0.0:${cluster}"`,
      `  routes: [${routes.map((route) => JSON.stringify(route)).join(', ')}]`,
      '}',
      '',
    ].join('\n'),
  };
}

export function brokerConfig(): ConfigMap {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: metadataOf('nats-config', BROKER), data: brokerFiles() };
}

/** Names of the single servers: they find each other before they are ready. */
export function brokerService(): Service {
  const ports = Object.entries(brokerPorts).map(([name, port]) => ({ name, port }));
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: metadataOf(BROKER),
    spec: { clusterIP: 'None', publishNotReadyAddresses: true, selector: labelsOf(BROKER), ports },
  };
}

export function brokers(): StatefulSet {
  const probe = (path: string) => ({ httpGet: { path, port: 'monitor' }, timeoutSeconds: 5 });
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: metadataOf(BROKER),
    spec: {
      replicas: BROKERS,
      serviceName: BROKER,
      podManagementPolicy: 'Parallel',
      selector: { matchLabels: labelsOf(BROKER) },
      template: {
        metadata: { labels: labelsOf(BROKER) },
        spec: {
          ...restrictedPod,
          terminationGracePeriodSeconds: LAME_DUCK.graceSeconds + LAME_DUCK.durationSeconds + 25,
          affinity: {
            podAntiAffinity: {
              // Two servers on one node would be lost together, and with them the majority.
              requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: labelsOf(BROKER) } }],
            },
          },
          containers: [
            {
              name: BROKER,
              image: serviceOf(BROKER).image,
              command: ['nats-server', '--config', `${CONFIG_FOLDER}/cluster.conf`],
              env: [
                { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
                ...Object.entries(natsEnvironment).map(([name, value]) => ({ name, value })),
                ...busUsers.map(passwordVariableOf).map((name) => ({ name, valueFrom: { secretKeyRef: { name: BROKER, key: name } } })),
              ],
              ports: Object.entries(brokerPorts).map(([name, containerPort]) => ({ name, containerPort })),
              // Loading the streams of a full disk takes minutes.
              startupProbe: { ...probe('/healthz?js-enabled-only=true'), periodSeconds: 5, failureThreshold: 120 },
              livenessProbe: { ...probe('/healthz?js-enabled-only=true'), periodSeconds: 10, failureThreshold: 6 },
              // Ready once it has caught up with the others: the next one is replaced only then.
              readinessProbe: { ...probe('/healthz'), periodSeconds: 5, failureThreshold: 3 },
              // Lame duck mode: it hands over its streams and clients, and exits.
              lifecycle: { preStop: { exec: { command: ['nats-server', '--signal', `ldm=${PID_FILE}`] } } },
              resources: { requests: { cpu: '500m', memory: '1Gi' }, limits: { memory: '1Gi' } },
              ...restrictedContainer,
              volumeMounts: [
                { name: 'config', mountPath: CONFIG_FOLDER, readOnly: true },
                { name: 'data', mountPath: DATA_FOLDER },
                { name: 'tmp', mountPath: '/tmp' },
              ],
            },
          ],
          volumes: [
            { name: 'config', configMap: { name: 'nats-config' } },
            { name: 'tmp', emptyDir: {} },
          ],
        },
      },
      volumeClaimTemplates: [
        {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          metadata: { name: 'data' },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '12Gi' } } },
        },
      ],
    },
  };
}

/** Creates the streams, or changes them to the settings of a release: before its services start. A Job can't be changed, so its name has the version. */
export function streamsJob(): Job {
  const { entrypoint, command } = serviceOf('streams');
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: metadataOf(`streams-${packageFile.version.replaceAll('.', '-')}`, 'streams'),
    spec: {
      backoffLimit: 20,
      ttlSecondsAfterFinished: 3_600,
      template: {
        metadata: { labels: labelsOf('streams') },
        spec: {
          ...restrictedPod,
          restartPolicy: 'OnFailure',
          containers: [
            {
              name: 'streams',
              image: IMAGE,
              command: entrypoint,
              args: command,
              env: containerEnvironment('streams'),
              resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '256Mi' } },
              ...restrictedContainer,
            },
          ],
        },
      },
    },
  };
}
