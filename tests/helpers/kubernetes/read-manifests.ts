import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';

const selector = z.strictObject({ name: z.string(), key: z.string(), optional: z.boolean().default(false) });
const variable = z.strictObject({
  name: z.string(),
  value: z.string().optional(),
  valueFrom: z
    .union([
      z.strictObject({ secretKeyRef: selector }),
      z.strictObject({ configMapKeyRef: selector }),
      z.strictObject({ fieldRef: z.strictObject({ fieldPath: z.string() }) }),
    ])
    .optional(),
});
const probe = z.looseObject({ httpGet: z.strictObject({ path: z.string(), port: z.string() }), periodSeconds: z.number(), failureThreshold: z.number() });
const securityContext = z.strictObject({
  allowPrivilegeEscalation: z.literal(false),
  readOnlyRootFilesystem: z.literal(true),
  capabilities: z.strictObject({ drop: z.tuple([z.literal('ALL')]) }),
});
const container = z.looseObject({
  name: z.string(),
  image: z.string(),
  command: z.array(z.string()).default([]),
  args: z.array(z.string()).default([]),
  env: z.array(variable),
  ports: z.array(z.strictObject({ name: z.string(), containerPort: z.number() })).default([]),
  startupProbe: probe.optional(),
  livenessProbe: probe.optional(),
  readinessProbe: probe.optional(),
  lifecycle: z.strictObject({ preStop: z.strictObject({ exec: z.strictObject({ command: z.array(z.string()).min(1) }) }) }).optional(),
  resources: z.strictObject({ requests: z.strictObject({ cpu: z.string(), memory: z.string() }), limits: z.strictObject({ memory: z.string() }) }),
  securityContext,
  volumeMounts: z.array(z.strictObject({ name: z.string(), mountPath: z.string(), readOnly: z.boolean().default(false) })).default([]),
});
const pod = z.looseObject({
  automountServiceAccountToken: z.literal(false),
  enableServiceLinks: z.literal(false),
  securityContext: z.looseObject({
    runAsNonRoot: z.literal(true),
    runAsUser: z.number().min(1),
    seccompProfile: z.strictObject({ type: z.literal('RuntimeDefault') }),
  }),
  terminationGracePeriodSeconds: z.number().default(30),
  affinity: z.looseObject({ podAntiAffinity: z.record(z.string(), z.array(z.unknown()).min(1)) }).optional(),
  containers: z.tuple([container]),
  volumes: z
    .array(
      z.strictObject({
        name: z.string(),
        configMap: z.strictObject({ name: z.string(), optional: z.boolean().default(false) }).optional(),
        emptyDir: z.strictObject({}).optional(),
      }),
    )
    .default([]),
});

const manifest = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), namespace: z.string().optional(), labels: z.record(z.string(), z.string()) }),
  spec: z.looseObject({}).optional(),
  data: z.record(z.string(), z.string()).optional(),
});

export type Manifest = z.infer<typeof manifest> & { path: string };
export type Pod = z.infer<typeof pod>;
export type PodContainer = z.infer<typeof container>;

/** Every object of the YAML files of a folder. @throws for a file that is not YAML, or an object without a kind or a name */
export function readManifests(folder: string): Manifest[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.yaml'));
  return files.sort().flatMap((path) =>
    parseAllDocuments(readFileSync(join(folder, path), 'utf8'), { uniqueKeys: true }).map((document) => {
      if ('errors' in document && document.errors.length > 0) throw document.errors[0];
      return { path, ...manifest.parse(document.toJS()) };
    }),
  );
}

const withTemplate = z.looseObject({ template: z.strictObject({ metadata: z.strictObject({ labels: z.record(z.string(), z.string()) }), spec: pod }) });

/** The pods of deployments, sets and jobs, by the name of their container. @throws for one with more privileges than it needs */
export function podsOf(manifests: readonly Manifest[]): Map<string, { owner: Manifest; labels: Record<string, string>; pod: Pod; container: PodContainer }> {
  const workloads = manifests.filter(({ kind }) => ['Deployment', 'StatefulSet', 'Job', 'DaemonSet', 'CronJob', 'Pod'].includes(kind));
  return new Map(
    workloads.map((owner) => {
      const { metadata, spec } = withTemplate.parse(owner.spec).template;
      const [only] = spec.containers;
      return [only.name, { owner, labels: metadata.labels, pod: spec, container: only }];
    }),
  );
}
