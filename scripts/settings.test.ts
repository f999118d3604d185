import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { helpText, settingGroups } from './settings.mjs';

const settings = settingGroups.flatMap((group) => group.settings);
const names = settings.map(({ name }) => name);
/** Sources of standalone's settings; those of tracing are shared by all services. */
const config = ['../services/standalone/config.ts', '../shared/config/tracing-settings.ts', '../services/standalone/upstream.ts']
  .map((path) => readFileSync(new URL(path, import.meta.url), 'utf8'))
  .join('\n');

describe('the settings of npm start', () => {
  it('are all those that standalone reads, and no others', () => {
    const read = [...config.matchAll(/^ {2}([A-Z][A-Z_]+):/gm)].map(([, name]) => name);
    // Set by parent processes; the keys are read where they are used.
    const expected = read.filter((name) => !name?.startsWith('SWITCHYARD_'));
    const keys = ['AGENT_API_KEY', 'ROUTER_API_KEY', 'HOUSE_SECRET', 'PLATFORM_PUBLIC_KEY', 'PLATFORM_SECRET_KEY'];

    expect(read.length).toBeGreaterThan(10);
    expect([...names].sort()).toEqual([...new Set([...expected, ...keys])].sort());
  });

  it('have the defaults that standalone has', () => {
    const defaults = new Map([...config.matchAll(/^ {2}([A-Z_]+):.*\.default\((.*)\),$/gm)].map(([, name, value]) => [name, value]));
    const plain = (text = '') => text.replace(/^'(.*)'$/, '$1').replaceAll(/(?<=\d)_(?=\d)/g, '');

    for (const { name, default: documented } of settings.filter((setting) => defaults.has(setting.name))) {
      expect(documented.replace(/^\.\//, ''), name).toBe(plain(defaults.get(name)));
    }
    expect(defaults.size).toBeGreaterThan(8);
  });
});

describe('the README', () => {
  it('lists every setting as --help does', () => {
    const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
    const rows = settings.map((setting) => {
      const value = setting.default.includes('`') ? setting.default : `\`${setting.default}\``;
      return `| \`${setting.name}\` | ${value} | ${setting.meaning} |`;
    });

    expect(readme.split('\n').filter((line) => /^\| `[A-Z_]+` \|/.test(line))).toEqual(rows);
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
