import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { RouterConfig } from '#shared/config/router-config.ts';
import { type BannerFacts, banner } from './banner.ts';
import { COLUMNS } from './wrap-words.ts';

const facts: BannerFacts = {
  what: 'Switchyard',
  routerUrls: ['http://127.0.0.1:3000'],
  agentUrls: ['http://127.0.0.1:8080'],
  agentName: 'Acme Support',
  manifestPath: join(process.cwd(), 'examples/acme-support/manifest.yaml'),
  dataFolder: join(process.cwd(), 'data'),
  isTemporary: false,
  routerKeys: [{ field: 'router_key' }],
  managementKeys: [{ field: 'router_management_key' }],
  agentKey: { field: 'agent_key' },
  shownKeys: new Map(),
  routerConfig: { models: [modelOf('scripted/assistant')] },
  routerConfigPath: null,
  openAi: null,
  vendors: [],
  question: 'How long is the warranty?',
  askCommand: 'npm run -s ask --',
  readmePath: join(process.cwd(), 'README.md'),
  envFile: null,
  warnings: [],
  withoutEffect: [],
  isNewFolder: false,
};
const lines = (more: Partial<BannerFacts> = {}) => banner({ ...facts, ...more }).split('\n');
const [routerKey, managementKey, agentKey] = [`sk-sy-v1-${'0'.repeat(64)}`, `sk-sy-mgmt-v1-${'2'.repeat(64)}`, `sk-sy-agent-v1-${'1'.repeat(64)}`];

describe('the banner', () => {
  it.each<[string, Partial<BannerFacts>]>([
    [
      'with generated keys',
      {
        shownKeys: new Map([
          ['router_key', routerKey],
          ['router_management_key', managementKey],
          ['agent_key', agentKey],
        ]),
      },
    ],
    ['at later starts', {}],
    ['in a new folder', { isNewFolder: true }],
    ['with many models', { routerConfig: { models: Array.from({ length: 40 }, (_, location) => modelOf(`provider/model-number-${location}`)) } }],
    ['with warnings', { warnings: [`${process.cwd()}/examples/manifest.yaml: ${'some words that go on '.repeat(12)}`] }],
    ['with a configuration and settings of one’s own', { routerConfigPath: '/srv/router.yaml', envFile: '.env', routerKeys: [{ variable: 'SHOP_FRONT_KEY' }] }],
  ])('is no wider than a terminal %s', (_, more) => {
    expect(lines(more).filter((line) => line.length > COLUMNS)).toEqual([]);
  });

  it('names the page first, and none without an agent server', () => {
    expect(lines().find((line) => line.includes('http'))).toBe('  Chat page      http://127.0.0.1:8080/chat');
    expect(banner({ ...facts, agentUrls: [] })).not.toContain('Chat page');
  });

  it('shows a generated key on a separate line, and otherwise names the file', () => {
    expect(lines({ shownKeys: new Map([['router_key', routerKey]]) })).toContain(routerKey);
    expect(lines()).toContain('    key          router_key in data/keys.json');
    expect(lines()).toContain('    management   router_management_key in data/keys.json');
  });

  it('says of a new data folder, and of no other, that it has no sessions', () => {
    const words = (text: string) => text.replaceAll(/\s+/g, ' ');
    const said = 'data (new, so it has no sessions yet)';

    expect(words(banner({ ...facts, isNewFolder: true }))).toContain(said);
    expect(words(banner(facts))).not.toContain('(new,');
  });

  it('names the variable of a key that the operator gave', () => {
    expect(lines({ agentKey: { variable: 'AGENT_API_KEY' } })).toContain('    key          $AGENT_API_KEY');
  });

  it('says that the scripted model answers, and how to change it, only without a configuration', () => {
    expect(banner(facts)).toContain('OPENAI_API_KEY');
    expect(banner({ ...facts, routerConfigPath: '/srv/router.yaml' })).not.toContain('OPENAI');
    expect(lines({ routerConfigPath: '/srv/router.yaml' })).toContain('  Models         scripted/assistant (/srv/router.yaml)');
  });

  it('has the address of a provider without a key, without what may be a credential in it', () => {
    const openAi = { baseUrl: 'http://me:secret@localhost:11434/v1?key=secret', hasKey: false };
    const text = banner({ ...facts, openAi, routerConfig: { models: [modelOf('local/llama3.2')] } });

    expect(text).toContain('  Models         local/llama3.2 (http://localhost:11434/v1, without a key)\n');
    expect(text).not.toContain('secret');
  });

  it('names the vendors whose keys are set, and the script no more', () => {
    const vendors = [{ name: 'Anthropic' }];
    const routerConfig = { models: [modelOf('anthropic/claude-sonnet-5-5')] };

    expect(lines({ vendors, routerConfig })).toContain('  Models         anthropic/claude-sonnet-5-5 (Anthropic)');
    const both = banner({ ...facts, vendors, routerConfig, openAi: { baseUrl: 'https://api.openai.com/v1', hasKey: true } });
    expect(both.replaceAll(/\s+/g, ' ')).toContain('(https://api.openai.com/v1; Anthropic)');
  });

  it('says when no key can be found, and nothing of management without a key for it', () => {
    const text = banner({ ...facts, routerKeys: [], managementKeys: [], routerConfigPath: '/srv/router.yaml' });

    expect(text).toContain('    key          none of a variable in /srv/router.yaml\n');
    expect(text).not.toContain('management');
  });

  it.each([
    ['/srv/data', 'DATA_DIR=/srv/data npm run -s ask -- "Hello"'],
    ["/srv/it's a folder", `DATA_DIR='/srv/it'\\''s a folder' npm run -s ask -- "Hello"`],
    [join(process.cwd(), 'elsewhere'), 'DATA_DIR=elsewhere npm run -s ask -- "Hello"'],
    [join(process.cwd(), 'data'), 'npm run -s ask -- "Hello"'],
  ])('has a line to paste that finds the data folder %s', (dataFolder, line) => {
    expect(lines({ dataFolder })).toContain(`  ${line}`);
  });

  it('names what a package has where it is installed', () => {
    const text = banner({ ...facts, askCommand: 'node /opt/switchyard/scripts/switchyard.mjs ask', readmePath: '/opt/switchyard/README.md' });

    expect(text).toContain('\n  node /opt/switchyard/scripts/switchyard.mjs ask --agent "How long is the warranty?"\n');
    expect(text).toContain('\n/opt/switchyard/README.md, "First requests"');
    expect(text).not.toContain('npm run');
    expect(lines()).toContain('README.md, "First requests", shows the same with curl and with an SDK.');
  });
});

function modelOf(id: string): RouterConfig['models'][number] {
  return { id, description: '', aliases: [], endpoints: [] };
}
