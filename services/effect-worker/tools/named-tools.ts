import type { BundleBody } from '#shared/config/bundle-body.ts';

/** Names of the tools that the configuration names, by server, without `server:*`. A start checks the servers alone, since a list needs its server. */
export function namedTools({ manifest, documents }: BundleBody): ReadonlyMap<string, readonly string[]> {
  const ids = [
    ...documents.policies.flatMap(({ enabled, tools }) => (enabled ? tools : [])),
    ...documents.routines.flatMap(({ enabled, tools, steps }) => (enabled ? [...tools, ...steps.flatMap(toolsOfStep)] : [])),
    ...documents.variable_sets.flatMap(({ variables }) => variables.flatMap(({ tool_id: id }) => id ?? [])),
    ...manifest.agent_config.context.reevaluation_tools.map(({ id }) => id),
  ];
  const named = new Map<string, string[]>();
  for (const id of new Set(ids)) {
    const [server, name] = [id.slice(0, id.indexOf(':')), id.slice(id.indexOf(':') + 1)];
    if (name !== '*') named.set(server, [...(named.get(server) ?? []), name]);
  }
  return named;
}

function toolsOfStep(step: BundleBody['documents']['routines'][number]['steps'][number]): readonly string[] {
  return step.kind === 'tool' ? step.tool_state : [];
}
