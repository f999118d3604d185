import { z } from 'zod';
import { entailment, priority } from '../contracts/manifest/context.ts';
import { tolerantList, tolerantNumber, tolerantObject, tolerantText } from './tolerant.ts';

const reference = tolerantObject({ id: tolerantText, version: tolerantNumber });
const references = tolerantList(reference);

/** The references of a manifest, parsed tolerantly so that errors elsewhere don't hide them. Null: invalid; of a list: not a list, so unknown. */
const manifestOutline = z.object({
  agent_config: z.object({
    context: z.object({
      system_prompt: reference,
      greeting: tolerantText,
      routines: references,
      policies: references,
      glossaries: references,
      macros: references,
      variables: references,
      reevaluation_tools: tolerantList(tolerantObject({ id: tolerantText })),
      relationships: tolerantObject({ priorities: tolerantList(priority), entailments: tolerantList(entailment) }),
    }),
    runtime: tolerantObject({ policy_batch_size: tolerantNumber }),
    mcps: tolerantList(tolerantObject({ id: tolerantText })),
    search: tolerantObject({ prompt: reference }),
    platform: tolerantObject({ base_url: tolerantText, public_key: tolerantText, secret_key: tolerantText }),
    webhooks: tolerantList(tolerantObject({ name: tolerantText, routines: tolerantList(tolerantText) })),
  }),
});

export type ManifestOutline = z.infer<typeof manifestOutline>['agent_config'];
export type Reference = z.infer<typeof reference>;

/** @returns null when there is no `context` object */
export function outlineOf(manifest: unknown): ManifestOutline | null {
  return manifestOutline.safeParse(manifest).data?.agent_config ?? null;
}
