#!/usr/bin/env node
import { requireNode } from './node-version.mjs';

requireNode();
const [command] = process.argv.slice(2);
/** Scripts: in a clone the first two make the build, of which the other commands are a part. */
const scripts = ['start', 'cluster', 'ask'];
if (command !== undefined && scripts.includes(command)) {
  process.argv.splice(2, 1);
  await import(`./${command}.mjs`);
} else await import('./operator.mjs');
