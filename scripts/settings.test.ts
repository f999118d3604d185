import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { otelSettings } from '../shared/config/otel-settings.ts';
import { settingsOf } from '../shared/config/setting-table.ts';
import { helpText, settingGroups } from './settings.mjs';

const settings = settingGroups.flatMap((group) => group.settings);
const names = settings.map(({ name }) => name);
const read = new Map<string, z.ZodType>(Object.entries(settingsOf('standalone')));

describe('the settings of npm start', () => {
  it('are all those that standalone reads, and no others', () => {
    // Set by parent processes; docs/operations.md has the standard variables of OpenTelemetry; the keys are read where they are used.
    const expected = [...read.keys()].filter((name) => !name.startsWith('SWITCHYARD_') && !Object.hasOwn(otelSettings, name));
    const keys = ['AGENT_API_KEY', 'ROUTER_API_KEY', 'ROUTER_MANAGEMENT_KEY', 'HOUSE_SECRET', 'PLATFORM_PUBLIC_KEY', 'PLATFORM_SECRET_KEY'];

    expect(expected.length).toBeGreaterThan(10);
    expect([...names].sort()).toEqual([...expected, ...keys].sort());
  });

  it('have the defaults that standalone has', () => {
    const defaults = new Map([...read].map(([name, schema]) => [name, schema.safeParse(undefined).data] as const).filter(([, value]) => value !== undefined));

    for (const { name, default: documented } of settings.filter((setting) => defaults.has(setting.name))) {
      expect(documented.replace(/^\.\//, ''), name).toBe(String(defaults.get(name)));
    }
    expect(defaults.size).toBeGreaterThan(8);
  });
});

describe('docs/settings.md', () => {
  it('lists every setting as --help does', () => {
    const page = readFileSync(new URL('../docs/settings.md', import.meta.url), 'utf8');
    const rows = settings.map((setting) => {
      const value = setting.default.includes('`') ? setting.default : `\`${setting.default}\``;
      return `| \`${setting.name}\` | ${value} | ${setting.meaning} |`;
    });

    expect(page.split('\n').filter((line) => /^\| `[A-Z_]+` \|/.test(line))).toEqual(rows);
  });
});

describe('the table of services in docs/settings.md', () => {
  const services = ['router-gateway', 'agent-gateway', 'actor-host', 'router-worker', 'effect-worker'] as const;
  const named: Record<string, readonly string[]> = {
    all: services,
    gateways: ['router-gateway', 'agent-gateway'],
    'gateways, actor-host': ['router-gateway', 'agent-gateway', 'actor-host'],
  };
  const page = readFileSync(new URL('../docs/settings.md', import.meta.url), 'utf8');
  const [, table = ''] = page.split('| Service | Variable | Meaning |\n');
  const rows = table
    .split('\n\n', 1)
    .flatMap((text) => text.split('\n').slice(1))
    .map((row) => row.split('|').map((cell) => cell.trim()));
  const readersOf = (variable: string) => services.filter((service) => Object.hasOwn(settingsOf(service), variable));

  it('names for each variable the services that read it', () => {
    const readers = rows.flatMap(([, service = '', variables = '']) =>
      [...variables.matchAll(/`([A-Z_]+)`/g)].map(([, variable = '']) => [variable, named[service] ?? service.split(', ')]),
    );

    expect(readers.length).toBeGreaterThan(10);
    expect(readers).toEqual(readers.map(([variable]) => [variable, readersOf(String(variable))]));
  });

  it('has every variable that a service can not start without', () => {
    const needed = services.flatMap((service) =>
      Object.entries<z.ZodType>(settingsOf(service)).flatMap(([name, schema]) => (schema.safeParse(undefined).success ? [] : [name])),
    );

    expect(needed.length).toBeGreaterThan(5);
    expect(needed.filter((name) => !table.includes(`\`${name}\``))).toEqual([]);
  });
});

describe('--help', () => {
  it('fits a terminal of 80 columns', () => {
    expect(
      helpText()
        .split('\n')
        .filter((line) => line.length > 80),
    ).toEqual([]);
  });

  it('lists every setting with its default', () => {
    for (const setting of settings) expect(helpText()).toContain(`  ${setting.name} (default: ${setting.default})\n`);
  });
});
