import type { ObjectMeta } from 'kubernetes-types/meta/v1.js';
import { streams } from '../../../bus/nats/streams.ts';
import { workQueues } from '../../../bus/work-queues.ts';
import { DELIVERY_CONCURRENCY } from '../../../services/effect-worker/deliveries/delivery-kind.ts';
import { TOOL_CONCURRENCY } from '../../../services/effect-worker/tools/tool-kind.ts';
import { DEFAULT_CONCURRENCY } from '../../../services/router-worker/service.ts';
import { BROKER, brokerPorts, metadataOf, NAMESPACE } from './names.ts';
import { isScaled, leastReplicas } from './workloads.ts';

/** Of KEDA, whose types no package has: the fields that are used. */
export interface ScaledObject {
  apiVersion: 'keda.sh/v1alpha1';
  kind: 'ScaledObject';
  metadata: ObjectMeta;
  spec: {
    scaleTargetRef: { name: string };
    minReplicaCount: number;
    maxReplicaCount: number;
    pollingInterval: number;
    cooldownPeriod: number;
    advanced: { horizontalPodAutoscalerConfig: { behavior: { scaleDown: { stabilizationWindowSeconds: number } } } };
    triggers: ({ type: 'nats-jetstream'; metadata: Record<string, string> } | { type: 'cpu'; metricType: 'Utilization'; metadata: { value: string } })[];
  };
}

/** How many items of each kind one worker has in flight at most. */
const concurrency: { [Kind in keyof typeof workQueues]: number } = {
  'router.turn': DEFAULT_CONCURRENCY.turnCalls,
  'router.call': DEFAULT_CONCURRENCY.clientCalls,
  tool: TOOL_CONCURRENCY,
  delivery: DELIVERY_CONCURRENCY,
};

/** Lag counts what waits and what is in flight: at half of a worker's capacity another one is added. */
const FILL = 0.5;
/** Of model calls of turns and runs only those are counted that found no free slot. They wait for seconds with little CPU, so a full worker shows in nothing else. */
const FILL_OF_TURNS = 1 / 16;
/** Each process has up to eight connections to the database. */
const MOST_WORKERS = 16;
/** A worker that ends drains for up to two minutes. */
const SCALE_DOWN_AFTER_SECONDS = 300;

/** Another worker by the lag of its consumers, and by its CPU: calls that a worker begins at once are in no stream. */
export function scalerOf(service: 'router-worker' | 'effect-worker'): ScaledObject {
  const queues = Object.entries(workQueues).filter(([, { read }]) => (read as readonly string[]).includes(service));
  if (!isScaled(service) || queues.length === 0) throw new Error(`${service} consumes no work`);
  return {
    apiVersion: 'keda.sh/v1alpha1',
    kind: 'ScaledObject',
    metadata: metadataOf(service),
    spec: {
      scaleTargetRef: { name: service },
      minReplicaCount: leastReplicas(service),
      maxReplicaCount: MOST_WORKERS,
      pollingInterval: 10,
      cooldownPeriod: SCALE_DOWN_AFTER_SECONDS,
      advanced: { horizontalPodAutoscalerConfig: { behavior: { scaleDown: { stabilizationWindowSeconds: SCALE_DOWN_AFTER_SECONDS } } } },
      triggers: [
        ...queues.map(([kind, { consumer }]) => ({
          type: 'nats-jetstream' as const,
          metadata: {
            natsServerMonitoringEndpoint: `${BROKER}.${NAMESPACE}:${brokerPorts.monitor}`,
            account: '$G',
            stream: streams.work.name,
            consumer,
            lagThreshold: String(concurrency[kind as keyof typeof workQueues] * (kind === 'router.turn' ? FILL_OF_TURNS : FILL)),
          },
        })),
        { type: 'cpu', metricType: 'Utilization', metadata: { value: '80' } },
      ],
    },
  };
}
