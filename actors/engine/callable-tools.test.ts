import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ListedTool } from '#bus/messages/tool.ts';
import { callableTools } from './callable-tools.ts';

const parameters = { type: 'object', properties: { verdict: { type: 'string' } }, required: ['verdict'] };
const own = [{ type: 'function' as const, function: { name: 'emit_output', parameters } }];

function listed(name: string, rest: Partial<ListedTool> = {}): ListedTool {
  return { name, title: null, description: null, inputSchema: { type: 'object' }, repeatable: false, ...rest };
}

function toolsOf(selectors: string[], lists: Record<string, ListedTool[]>) {
  const hashed = Object.fromEntries(Object.entries(lists).map(([server, tools]) => [server, { hash: `hash-${server}`, tools }]));
  return callableTools({ selectors, lists: hashed, own });
}

function namesIn({ functions }: ReturnType<typeof callableTools>): string[] {
  return functions.map((one) => one.function.name);
}

describe('callableTools', () => {
  it('includes no tool that no selector names', () => {
    const tools = toolsOf(['crm:find', 'erp:*'], { crm: [listed('find'), listed('delete')], erp: [listed('stock')], mail: [listed('send')] });

    expect(namesIn(tools)).toEqual(['crm__find', 'erp__stock', 'emit_output']);
    expect(tools.toolOf('crm__delete')).toBeNull();
    expect(tools.toolOf('toString')).toBeNull();
  });

  it('never includes a server’s tool with the name of a function that is no tool', () => {
    const tools = toolsOf(['*:*', ':emit_output', 'emit:output', 'crm:*'], {
      '': [listed('emit_output')],
      emit: [listed('output')],
      crm: [listed('emit_output')],
    });

    expect(namesIn(tools).filter((name) => name === 'emit_output')).toHaveLength(1);
    expect(tools.toolOf('emit_output')).toBeNull();
    expect(tools.functions.at(-1)?.function).toMatchObject({ name: 'emit_output', parameters });
  });

  it('finds the tool and its list by the generated name', () => {
    const tool = toolsOf(['crm:*'], { crm: [listed('find.by name')] }).toolOf('crm__find_by_name');

    expect(tool).toMatchObject({ toolId: 'crm:find.by name', listHash: 'hash-crm' });
  });

  it('distinguishes tools whose names are the same in plain characters', () => {
    const tools = toolsOf(['a:*', 'a__b:*'], { a: [listed('b.c'), listed('b c'), listed('b__c')], a__b: [listed('c')] });

    expect(tools.functions.map(({ function: { name } }) => [name, tools.toolOf(name)?.toolId])).toEqual([
      ['a__b_c', 'a:b c'],
      ['a__b_c_2', 'a:b.c'],
      ['a__b__c', 'a:b__c'],
      ['a__b__c_2', 'a__b:c'],
      ['emit_output', undefined],
    ]);
  });

  it('generates the same names in the same order, however selectors and lists are ordered', () => {
    const lists = { crm: [listed('find'), listed('add')], erp: [listed('x.y'), listed('x y')] };
    const turned = { erp: [...lists.erp].reverse(), crm: [...lists.crm].reverse() };

    expect(JSON.stringify(toolsOf(['erp:*', 'crm:*'], turned).functions)).toBe(JSON.stringify(toolsOf(['crm:*', 'erp:*'], lists).functions));
  });

  it('generates for every tool a unique name that every upstream accepts', () => {
    const part = fc.oneof(
      fc.string({ unit: fc.constantFrom('a', 'B', '_', '-', '7', '.', 'é', ' ') }),
      fc.string({ minLength: 60, maxLength: 130, unit: fc.constantFrom('a', '.') }),
    );
    fc.assert(
      fc.property(fc.dictionary(part, fc.array(part, { maxLength: 8 })), (servers) => {
        const lists = Object.fromEntries(Object.entries(servers).map(([server, tools]) => [server, tools.map((name) => listed(name))]));
        const ids = new Set(Object.entries(servers).flatMap(([server, tools]) => tools.map((name) => `${server}:${name}`)));
        const tools = toolsOf(
          Object.keys(servers).map((server) => `${server}:*`),
          lists,
        );

        expect(namesIn(tools).every((name) => /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/.test(name))).toBe(true);
        expect(new Set(namesIn(tools)).size).toBe(ids.size + 1);
        expect(new Set(namesIn(tools).map((name) => tools.toolOf(name)?.toolId ?? null))).toEqual(new Set([...ids, null]));
      }),
    );
  });

  it('leaves out tools beyond the limit of a request, those of a whole server first', () => {
    const many = Array.from({ length: 200 }, (_, index) => listed(`tool${index}`));

    const tools = toolsOf(['crm:*', 'zoo:feed'], { crm: many, zoo: [listed('feed')] });

    expect(tools.functions).toHaveLength(128);
    expect(namesIn(tools).slice(-2)).toEqual(['zoo__feed', 'emit_output']);
  });

  it('checks arguments against the tool’s schema', () => {
    const inputSchema = { type: 'object', properties: { sku: { type: 'string' } }, required: ['sku'] };
    const tool = toolsOf(['crm:find'], { crm: [listed('find', { inputSchema })] }).toolOf('crm__find');

    expect(tool?.validate({})).toMatchObject({ path: '/sku', keyword: 'required' });
    expect(tool?.validate({ sku: 'a' })).toBeNull();
  });

  it.each<[string, Record<string, unknown>]>([
    [
      'definitions that double',
      {
        $defs: Object.fromEntries(
          Array.from({ length: 31 }, (_, level) => {
            const next = { $ref: `#/$defs/d${level + 1}` };
            return [`d${level}`, level === 30 ? { type: 'null' } : { anyOf: [next, next] }];
          }),
        ),
        $ref: '#/$defs/d0',
      },
    ],
    ['a reference that leads back to the same value', { allOf: [{ $ref: '#' }] }],
  ])('takes any arguments for a schema that could hold up the host: %s', (_what, inputSchema) => {
    const tool = toolsOf(['crm:find'], { crm: [listed('find', { inputSchema })] }).toolOf('crm__find');
    const before = process.cpuUsage();

    expect(tool?.validate({ any: ['thing'] })).toBeNull();
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(2_500);
  });

  it('accepts any arguments for a schema that can not be compiled, but none that are nested too deeply', () => {
    const tool = toolsOf(['crm:find'], { crm: [listed('find', { inputSchema: { $ref: 'https://schemas.example/x' } })] }).toolOf('crm__find');
    const deep: unknown = JSON.parse(`${'{"a":'.repeat(100)}1${'}'.repeat(100)}`);

    expect(tool?.validate({ anything: 1 })).toBeNull();
    expect(tool?.validate(deep)?.keyword).toBe('maxDepth');
  });

  it('adds what upstreams require, and includes descriptions, cleaned and truncated', () => {
    const lists = { crm: [listed('a', { inputSchema: {}, description: `${'x'.repeat(2_000)}` }), listed('b', { title: 'Be\u202e' }), listed('c')] };

    const [a, b, c] = toolsOf(['crm:*'], lists).functions;

    expect(a?.function.parameters).toEqual({ type: 'object', properties: {} });
    expect(a?.function.description).toHaveLength(1_024);
    expect(b?.function.description).toBe('Be');
    expect(c?.function).not.toHaveProperty('description');
  });
});
