import { z } from 'zod';
import { ofKind } from './read-folder.ts';

const peer = z.union([
  z.strictObject({ podSelector: z.strictObject({ matchLabels: z.strictObject({ 'app.kubernetes.io/name': z.string() }) }) }),
  z.strictObject({ namespaceSelector: z.strictObject({ matchLabels: z.strictObject({ 'kubernetes.io/metadata.name': z.string() }) }) }),
  z.strictObject({ ipBlock: z.strictObject({ cidr: z.string(), except: z.array(z.string()) }) }),
]);
const ports = z.array(z.strictObject({ protocol: z.string(), port: z.number() }));
const policySpec = z.strictObject({
  podSelector: z.strictObject({ matchLabels: z.strictObject({ 'app.kubernetes.io/name': z.string() }).optional() }),
  policyTypes: z.array(z.enum(['Ingress', 'Egress'])),
  ingress: z.array(z.strictObject({ from: z.array(peer).optional(), ports })).default([]),
  egress: z.array(z.strictObject({ to: z.array(peer).optional(), ports })).default([]),
});

export function policies() {
  return ofKind('NetworkPolicy').map(({ spec }) => policySpec.parse(spec));
}

export function peerName(one: z.infer<typeof peer>): string {
  if ('podSelector' in one) return one.podSelector.matchLabels['app.kubernetes.io/name'];
  if ('namespaceSelector' in one) return `namespace ${one.namespaceSelector.matchLabels['kubernetes.io/metadata.name']}`;
  return 'the internet';
}

/** TCP ports that pods accept from a peer. `null`: from any. */
export function mayReach(from: string | null, to: string): number[] {
  const rules = policies()
    .filter(({ podSelector }) => podSelector.matchLabels?.['app.kubernetes.io/name'] === to)
    .flatMap(({ ingress }) => ingress);
  const admitting = rules.filter((rule) => (from === null ? rule.from === undefined : rule.from?.map(peerName).includes(from)));
  return admitting.flatMap((rule) => rule.ports.map(({ port }) => port));
}

/** TCP ports that pods may open connections to. `null`: at any address. */
export function mayOpen(from: string, to: string | null): number[] {
  const rules = policies()
    .filter(({ podSelector }) => podSelector.matchLabels?.['app.kubernetes.io/name'] === from)
    .flatMap(({ egress }) => egress);
  const admitting = rules.filter((rule) => (to === null ? rule.to === undefined : rule.to?.map(peerName).includes(to)));
  return admitting.flatMap((rule) => rule.ports.map(({ port }) => port));
}
