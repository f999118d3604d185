import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { providerBlock } from '../services/router-worker/providers/registry.ts';
import { checkRouterConfig } from '../shared/config/load-router-config.ts';
import { documentedBlocks, documentedPages, pastedSections } from './helpers/documented-blocks.ts';
import { root } from './helpers/run-program.ts';

/** Sections whose commands another test runs, from the page or in the same words. */
const RUN_ELSEWHERE: Record<string, string> = {
  'README.md: The first ten minutes': 'tests/e2e/two-commands.test.ts',
  'README.md: Settings and tests': 'tests/e2e/first-lines.test.ts',
  'README.md: First requests': 'tests/e2e/first-lines.test.ts',
  'README.md: Scaling out': 'tests/e2e/cluster.test.ts',
  "client/README.md: client: the agent server's client for TypeScript": 'tests/e2e/first-lines.test.ts',
  'docs/deploy.md: Streams of the broker': 'tests/e2e/monitoring.test.ts',
  'docs/deploy.md: Without containers': 'tests/e2e/without-containers.test.ts',
  'docs/incidents.md: A partition has no owner': 'tests/e2e/monitoring.test.ts',
  'docs/platform.md: Documents and platforms': 'tests/e2e/platform.test.ts',
  'docs/plugins.md: Plugins': 'tests/plugins-over-apis.test.ts',
  'docs/quick-start.md: 1. Start': 'tests/e2e/two-commands.test.ts',
  'docs/quick-start.md: 5. An agent of your own': 'tests/e2e/webhooks.test.ts',
  'docs/quick-start.md: 7. More than one process': 'tests/e2e/cluster.test.ts',
  'docs/scenarios.md: Replays': 'tests/e2e/replay.test.ts',
  'docs/webhooks.md: Webhooks that start runs': 'tests/e2e/webhooks.test.ts',
  'examples/README.md: acme-support: an agent': 'tests/e2e/first-lines.test.ts',
};

/** Sections with commands or code that no test runs, and why. */
const EXCEPTIONS: Record<string, string> = {
  'deploy/README.md: deploy': 'runs the tests themselves, and writes the files that they compare',
  'docs/deploy.md: Start': 'needs Docker; tests/deploy.test.ts compares the file with the code',
  'docs/deploy.md: A broker of your own': 'needs nats-server 2.10 for sync_interval; tests/deploy-servers.test.ts compares the file with the code',
  'docs/deploy.md: Scale': 'needs Docker',
  'docs/deploy.md: Both roles in one process': 'needs Docker; tests/e2e/roles-in-one-process.test.ts starts the processes',
  'docs/deploy.md: Backup': 'needs Docker; tests/e2e/without-containers.test.ts makes and restores a backup',
  'docs/deploy.md: Dead letters': 'needs Docker; scripts/operator.test.ts and tests/e2e run the command itself',
  'docs/deploy.md: Kubernetes': 'needs a cluster of Kubernetes',
  'docs/keys.md: Prices': 'needs a key of a vendor; services/standalone/model-prices.test.ts reads such files',
  'docs/moving.md: 5. Trying it beside the old one': 'needs keys of vendors',
  'docs/quick-start.md: 4. A real model': 'needs a key of a vendor; tests/e2e/vendors.test.ts and own-provider.test.ts start with one of a double',
  'examples/README.md: router.yaml: models, providers and keys': 'needs a key of a vendor; tests/e2e/service-processes.test.ts starts with the file',
};

const blocks = documentedPages().flatMap(documentedBlocks);
const nameOf = ({ page, heading }: { page: string; heading: string }) => `${page}: ${heading}`;
const runnable = blocks.filter(({ language }) => ['sh', 'js', 'ts'].includes(language));

describe('the commands and examples of README and docs/', () => {
  it('are run by a test, or stand in the list of exceptions', () => {
    const known = new Set([...pastedSections.map(nameOf), ...Object.keys(RUN_ELSEWHERE), ...Object.keys(EXCEPTIONS)]);

    expect(runnable.length).toBeGreaterThan(40);
    expect(runnable.map(nameOf).filter((name) => !known.has(name))).toEqual([]);
    expect([...known].filter((name) => !runnable.some((block) => nameOf(block) === name))).toEqual([]);
  });

  it('name tests that exist', () => {
    expect(Object.values(RUN_ELSEWHERE).filter((path) => !existsSync(join(root, path)))).toEqual([]);
    expect(readFileSync(join(root, 'tests/e2e/first-lines.test.ts'), 'utf8')).toContain('pastedSections');
  });

  it('are of a language that this test knows', () => {
    expect([...new Set(blocks.map(({ language }) => language))].sort()).toEqual(['', 'js', 'json', 'sh', 'ts', 'yaml']);
  });
});

const router = {
  providers: ['openai', 'deepinfra'].map((slug) => ({ slug, kind: 'openai-compatible', base_url: 'https://provider.example/v1' })),
  models: [
    { id: 'openai/one', endpoints: [{ provider: 'openai', upstream_model: 'one' }] },
    { id: 'deepinfra/one', endpoints: [{ provider: 'deepinfra', tag: 'deepinfra/turbo', upstream_model: 'one' }] },
  ],
  keys: [{ id: 'one', key: `sha256:${'0'.repeat(64)}` }],
};
const variables = { DRAFTS_KEY: 'sk-drafts', SHOP_KEY: 'sk-shop', MANAGEMENT_KEY: 'sk-management', ROUTER_API_KEY: 'sk-agent' };

describe('parts of a router configuration in docs/', () => {
  it.each(['moving', 'plugins', 'providers', 'routing', 'embeddings'])('are accepted: %s.md', (name) => {
    const blocks = documentedBlocks(`docs/${name}.md`).filter(({ language }) => language === 'yaml');
    expect(blocks.length).toBeGreaterThan(0);
    for (const { text } of blocks) {
      const part: unknown = parse(text);
      const whole = Array.isArray(part) ? { ...router, models: [...router.models, ...part] } : { ...router, ...(part as object) };

      expect(checkRouterConfig(whole, variables, { secrets: 'keys', provider: providerBlock }).models.length).toBeGreaterThan(0);
    }
  });
});
