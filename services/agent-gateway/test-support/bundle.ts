import { type BundleBody, bundleBody } from '#shared/config/bundle-body.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { manifest } from '#shared/contracts/manifest/manifest.ts';

export const BUNDLE_HASH = 'bundle-1';

/** The same bundle with variable sets. */
export function withVariables(bundle: Bundle, ...sets: { id: string; variables: object[] }[]): Bundle {
  const documents = { ...bundle.body.documents, variable_sets: sets.map((set) => ({ version: 1, ...set })) };
  return { ...bundle, body: bundleBody.parse({ ...bundle.body, documents }) };
}

/** A bundle of routines only, autonomous ones by default. */
export function bundleWith(...routines: object[]): Bundle {
  return bundleOf({}, ...routines);
}

/** @param config further blocks of the manifest's `agent_config` */
export function bundleOf(config: object, ...routines: object[]): Bundle {
  const secret = '$' + '{SECRET}';
  const body: BundleBody = bundleBody.parse({
    manifest: manifest.parse({
      id: 'agent-1',
      name: 'Agent',
      version: '1',
      agent_config: {
        runtime: { api_key: secret },
        platform: { public_key: secret, secret_key: secret },
        llms: { default: 'switchyard/assistant', api_key: secret },
        context: { system_prompt: { id: 'prompt', version: 1 }, language: 'match_user' },
        ...config,
      },
    }),
    documents: {
      prompts: [],
      routines: routines.map((routine) => ({ version: 1, ...('kind' in routine ? {} : { kind: 'autonomous', instructions: 'Do it.' }), ...routine })),
      policies: [],
      glossaries: [],
      macros: [],
      variable_sets: [],
    },
  });
  return { hash: BUNDLE_HASH, body };
}
