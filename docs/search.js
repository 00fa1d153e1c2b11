// Asks a built site's own search, its worker, outside a browser: node search.js SITE WORD... prints a JSON list a word.
const fs = require("fs"), path = require("path"), vm = require("vm");
const [site, ...words] = process.argv.slice(2);
const scripts = path.join(site, "assets", "javascripts", "workers");
const [worker] = fs.readdirSync(scripts).filter((name) => /^search\..*\.js$/.test(name));
const answers = [];
let hear;
const self = { addEventListener: (_, listener) => (hear = listener), postMessage: (message) => answers.push(message), console };
vm.runInNewContext(fs.readFileSync(path.join(scripts, worker), "utf8"), Object.assign(self, { self }));
(async () => {
  const index = JSON.parse(fs.readFileSync(path.join(site, "search", "search_index.json"), "utf8"));
  await hear({ data: { type: 0, data: { ...index, options: { suggest: false } } } }); // SETUP
  for (const word of words) await hear({ data: { type: 2, data: word } }); // QUERY
  for (const { data } of answers.slice(1)) console.log(JSON.stringify(data.items.map(([first]) => first.location)));
})();
