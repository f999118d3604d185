import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Access, operations as routerOperations } from '../services/router-gateway/openapi/operations.ts';
import { providerBlock } from '../services/router-worker/providers/registry.ts';
import { routerConfigWith } from '../shared/config/router-config.ts';
import { publishedSchemas } from '../shared/contracts/published-schemas.ts';
import { commentedLiterals } from './helpers/reference/doc-comments.ts';
import { httpPage } from './helpers/reference/http-page.ts';
import { type ShownSchema, schemaTables } from './helpers/reference/schema-tables.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const sourcesIn = (folder: string) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.ts') && !name.includes('.test.'))
    .map((name) => `${folder}/${name}`);
const literalsOf = (paths: readonly string[]) => paths.flatMap((path) => commentedLiterals(read(path)));

const MADE = 'This page is made from the code: `npx vitest run reference-pages --update`.';
const FIELDS =
  'A field without a default that is not required may be left out. `[]` stands for each entry of a list, `.*` for each value of a map. Unknown fields are refused.';

const ROUTER_ACCESS: Record<Access, string> = {
  call: 'Needs a key that may call models, no management key.',
  key: '',
  management: 'Needs a management key.',
  platform: 'Needs the keys of the platform.',
  traces: 'Needs any key, or the keys of the platform.',
  none: 'Needs no key.',
};

function schemaNamed(path: string): ShownSchema {
  const found = publishedSchemas().get(path);
  if (found === undefined) throw new Error(`there is no schemas/${path}`);
  return found as ShownSchema;
}

function manifestPage(): string {
  const path = 'manifest/6.1.5.json';
  const tables = schemaTables(
    schemaNamed(path),
    'The file',
    literalsOf([...sourcesIn('shared/contracts/manifest'), ...sourcesIn('shared/contracts/documents')]),
  );
  return `# Manifest\n\nA YAML or JSON file that describes one agent ([an example](../../examples/acme-support/manifest.yaml)). Credentials are references like \`\${VARIABLE}\` to the environment. \`npm run operator -- validate MANIFEST\` lists every mistake; editors complete and check it by [the JSON Schema](../../schemas/${path}). ${MADE}\n\n${FIELDS}\n\n## Fields\n\n${tables}\n`;
}

function documentsPage(): string {
  const literals = literalsOf(sourcesIn('shared/contracts/documents'));
  const kinds = ['prompt', 'routine', 'policy', 'glossary', 'macro', 'variable-set'];
  const sections = kinds.map((kind) => {
    const path = `documents/${kind}.json`;
    return `## ${kind}\n\n[JSON Schema](../../schemas/${path})\n\n${schemaTables(schemaNamed(path), `Fields of a ${kind}`, literals)}`;
  });
  return `# Documents\n\nThe documents that a manifest names: YAML or JSON files in \`documents/\` beside it, or published to [a platform](../platform.md). What a turn makes of them is in [the rules of the engine](../engine.md). ${MADE}\n\n${FIELDS}\n\n${sections.join('\n\n')}\n`;
}

function routerPage(): string {
  const schema = z.toJSONSchema(routerConfigWith(providerBlock), { target: 'draft-2020-12', io: 'input', unrepresentable: 'any' }) as ShownSchema;
  const dialects = readdirSync(join(root, 'services/router-worker/providers'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => sourcesIn(`services/router-worker/providers/${name}`).filter((path) => path.endsWith('/config.ts')));
  const literals = literalsOf(['shared/config/router-config.ts', 'shared/config/plugin-settings.ts', ...sourcesIn('shared/contracts/router'), ...dialects]);
  return `# Router configuration\n\nThe YAML or JSON file of \`ROUTER_CONFIG\` ([examples](../../examples/router.yaml)); [providers and models](../providers.md), [routing](../routing.md), [keys](../keys.md) and [plugins](../plugins.md) say what its parts do. Prices are US dollars per million tokens, as decimals in quotes. With \`catalogue: …\` a model or an endpoint takes absent fields from [the catalogue](../providers.md#catalogue) before it is checked. ${MADE}\n\n${FIELDS}\n\n## Fields\n\n${schemaTables(schema, 'The file', literals)}\n`;
}

function agentHttpPage(): string {
  const document: unknown = JSON.parse(read('schemas/agent-server/0.9.0/openapi.json'));
  const literals = literalsOf([...sourcesIn('shared/contracts/agent'), ...sourcesIn('services/agent-gateway/routes')]);
  return `# HTTP reference of the agent server\n\nEvery operation needs \`Authorization: Bearer\` and the agent's key, or the cookie of a login, unless it says otherwise. A running server has the same at \`/docs\`, and for programs at \`/openapi.json\` ([file](../../schemas/agent-server/0.9.0/openapi.json)). ${MADE}\n\n${httpPage(document, literals)}`;
}

function routerHttpPage(): string {
  const document: unknown = JSON.parse(read('schemas/router/1/openapi.json'));
  const literals = literalsOf(sourcesIn('shared/contracts/router'));
  const accessOf = (name: string) => ROUTER_ACCESS[routerOperations[name]?.access ?? 'none'];
  return `# HTTP reference of the model router\n\nEvery operation needs \`Authorization: Bearer\` and a key of the router ([keys](../keys.md)), of any kind unless it says which. Paths below \`/api/v1\` also answer at \`/v1\`. A running router has the description at \`/openapi.json\` ([file](../../schemas/router/1/openapi.json)). ${MADE}\n\n${httpPage(document, literals, accessOf)}`;
}

describe('docs/reference', () => {
  it.each([
    ['manifest.md', manifestPage],
    ['documents.md', documentsPage],
    ['router-configuration.md', routerPage],
    ['agent-http.md', agentHttpPage],
    ['router-http.md', routerHttpPage],
  ])('%s is made from the code: npx vitest run reference-pages --update writes it', async (name, page) => {
    await expect(page()).toMatchFileSnapshot(`../docs/reference/${name}`);
  });
});

describe('a table of fields', () => {
  const source = `
const inner = z.strictObject({
  /** Where it is. */
  url: z.url(),
  retries: z.number(),
});
const outer = z.strictObject({
  /** Of the whole. */
  url: z.string(),
  /**
   * Said in
   * two lines.
   */
  entries: z.array(inner),
  mode: z.string(),
});
`;
  const schema = z.toJSONSchema(
    z.strictObject({
      url: z.string(),
      entries: z.array(z.strictObject({ url: z.url(), retries: z.int().min(1).max(9).default(3) })).max(4),
      mode: z
        .discriminatedUnion('kind', [z.strictObject({ kind: z.literal('a'), text: z.string().nullable() }), z.strictObject({ kind: z.literal('b') })])
        .optional(),
    }),
    { io: 'input' },
  ) as ShownSchema;
  const text = schemaTables(schema, 'Fields', commentedLiterals(source));

  it('has the comment of each field from the literal that declares it', () => {
    expect(text).toContain('| `url` | text | required | Of the whole. |');
    expect(text).toContain('| `entries[].url` | URL | required | Where it is. |');
    expect(text).toContain('Said in two lines. |');
  });

  it('has types, bounds and defaults', () => {
    expect(text).toContain('| `entries` | list of object, at most 4 entries | required |');
    expect(text).toContain('| `entries[].retries` | whole number, at least 1, at most 9 | `3` |  |');
  });

  it('has a table of its own for each form of a field', () => {
    expect(text).toContain('### `mode`, `kind: a`');
    expect(text).toContain('| `text` | text, or null | required |');
    expect(text).toContain('### `mode`, `kind: b`');
  });
});
