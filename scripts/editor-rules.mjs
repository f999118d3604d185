import { readFileSync, writeFileSync } from 'node:fs';
import { importRules } from './import-rules.mjs';
import { isProgram } from './run-script.mjs';

/** @import { ImportRule, ImportRules } from './import-rules.mjs' */

const TESTS = '**/*.test.ts';
const OWN_ROOM = 'inside a room paths are relative';

/**
 * The overrides of biome.json that show a forbidden import in the editor. Biome matches specifiers and not files, and the last override of a file
 * replaces the earlier ones. So each rule gets up to three, from all files of its folder to the fewest, and each repeats the patterns before it.
 * `npm run format` writes them. The architecture test finds the rest: relative paths out of a folder, cycles, re-exports.
 *
 * @param {ImportRules} rules
 */
export function editorRules({ rooms, rules, drivers }) {
  return rules.flatMap((rule, row) => {
    const [room = ''] = rule.files.split('/');
    const earlier = rules.slice(0, row).filter(({ files }) => files.startsWith(rule.files.split('*')[0] ?? ''));
    const ownRoom = room === 'services' ? [] : [`#${room}/**`];
    const otherPackages = rule.packages ? ['**', '!./**', '!../**', '!#*/**', ...rule.packages.flatMap((name) => [`!${name}`, `!${name}/**`])] : [];
    const driverFiles = drivers.folders.includes(rule.files) ? [] : drivers.folders.map((folder) => driverGlob(folder, room));
    const steps = [
      { patterns: [...pattern(ownRoom, OWN_ROOM), ...pattern(forbiddenRooms(rule, rooms), rule.because)], except: [] },
      { patterns: pattern(otherPackages, rule.because), except: [TESTS] },
      { patterns: pattern(driverFiles, drivers.because), except: [...drivers.openedBy, ...drivers.folders.map(glob)] },
    ];
    return steps.flatMap(({ patterns, except }, step) => {
      if (patterns.length === 0) return [];
      const excluded = [...earlier.map(({ files }) => glob(files)), ...except].map((files) => `!${files}`);
      return [override([glob(rule.files), ...excluded], [...steps.slice(0, step).flatMap((before) => before.patterns), ...patterns])];
    });
  });
}

/** @param {string[]} group @param {string} message */
function pattern(group, message) {
  return group.length === 0 ? [] : [{ group, message }];
}

/** @param {ImportRule} rule @param {readonly string[]} rooms */
function forbiddenRooms({ files, mayImport, never = [] }, rooms) {
  const [own] = files.split('/');
  const forbidden = rooms.filter((room) => room !== own && !mayImport.some((prefix) => prefix.startsWith(`${room}/`)));
  const otherServices = own === 'services' && !mayImport.includes('services/') ? ['#services/**', ...allowedServices(files, mayImport)] : [];
  return [...forbidden.map((room) => `#${room}/**`), ...otherServices, ...never.map((path) => (path.endsWith('/') ? `#${path}**` : `#${path}`))];
}

/** Exceptions, which stand behind what they are exceptions from. @param {string} files @param {readonly string[]} mayImport */
function allowedServices(files, mayImport) {
  return mayImport.filter((prefix) => prefix.startsWith('services/') && prefix !== files).map((prefix) => `!#${prefix}**`);
}

/** @param {string} folder */
function glob(folder) {
  return `${folder.replace(/\*\/$/, '')}**`;
}

/** A driver as files of a room name it. @param {string} folder @param {string} room */
function driverGlob(folder, room) {
  return folder.startsWith(`${room}/`) ? `**/${folder.slice(room.length + 1)}**` : `#${folder}**`;
}

/** @param {string[]} includes @param {ReturnType<typeof pattern>} patterns */
function override(includes, patterns) {
  return { includes, linter: { rules: { style: { noRestrictedImports: { level: 'error', options: { patterns } } } } } };
}

if (isProgram(import.meta.url)) {
  const file = new URL('../biome.json', import.meta.url);
  const config = JSON.parse(readFileSync(file, 'utf8'));
  writeFileSync(file, `${JSON.stringify({ ...config, overrides: editorRules(importRules) }, null, 2)}\n`);
}
