// Loaded before a program (`node --import`): V8 optimises only WebAssembly that runs for long. The embedded database is WebAssembly, and with V8's
// own budget half of a start's CPU optimises functions that run for a second or two.
import { setFlagsFromString } from 'node:v8';

setFlagsFromString('--wasm-tiering-budget=90000000');
