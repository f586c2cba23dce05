// Puts a client through everything with node: node node.cjs NAME SETTINGS. Prints what worked as JSON.
const { drive, newLog } = require("./drive.cjs");

const [, , name, settings] = process.argv;
const log = newLog();
const { skip, lacks, ...about } = JSON.parse(settings);
drive(require(`./${name}.cjs`)(about, log), log, skip, lacks).then((told) => {
  process.stdout.write(`\n${JSON.stringify(told)}\n`, () => process.exit());
});
